"""The labelling page: a small web server over one campaign, and the page it serves.

The server reaches the campaign through `ally.campaign.Campaign` and nothing else, and never imports torch.
"""
