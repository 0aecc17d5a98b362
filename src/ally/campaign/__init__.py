"""A labelling campaign over days: ask, tell, retrain beside it, advise."""
