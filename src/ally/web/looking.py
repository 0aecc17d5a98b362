"""Routes for the campaign, progress, labels to review, events, and owner actions."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.exceptions import HTTPException

from ally.campaign import Campaign
from ally.types import SKIP
from ally.web import schemas
from ally.web.access import Access
from ally.web.events import Events
from ally.web.readable import plain, text_of
from ally.web.routing import Routes, person_of

EXPORTS = {"csv": "text/csv", "jsonl": "application/x-ndjson"}


def add_routes(router: Routes, campaign: Campaign, events: Events, access: Access) -> None:
    @router.get("/campaign")
    def about(request: Request) -> schemas.CampaignInfo:
        """What is labelled, with which classes, and who you are."""
        settings, me = campaign.settings, person_of(request)
        classes = [] if settings.task == "regression" else list(campaign.classes)
        return schemas.CampaignInfo(
            name=_short(campaign.name),
            identity=hashlib.sha256(campaign.name.encode("utf-8", "surrogatepass")).hexdigest()[:12],
            task=settings.task,
            kind=campaign.source.samples.kind.name,
            widget=campaign.source.samples.kind.widget,
            classes=[schemas.Class(label=label, text=text_of(label)) for label in classes],
            open_classes=settings.task == "classification" and settings.classes is None,
            numbers=_range(campaign.page.numbers()) if settings.task == "regression" else None,
            labels=campaign.page.label_count(),
            samples=campaign.source.size,
            budget=settings.budget,
            opinions=settings.opinions,
            lease_seconds=settings.lease_seconds,
            shared=access.alone is None,
            me=schemas.Me(annotator=me.annotator, role=me.role),
        )

    @router.get("/progress")
    def progress() -> schemas.Progress:
        """The learning curve, the advice, everyone's pace, and how well people agree."""
        status, people = campaign.status(), campaign.page.paces()
        rates = [person.per_minute for person in people if person.per_minute]
        rate = sum(rates) if rates else None
        left = None if status.budget is None else max(0, status.budget - status.labels)
        return schemas.Progress(
            labels=status.labels,
            budget=status.budget,
            samples=status.samples,
            free=status.free,
            skipped=status.skipped,
            gone=status.gone,
            evaluate=[status.evaluate.labelled, status.evaluate.samples],
            metric=status.curve[0].metric if status.curve else "accuracy",
            curve=[schemas.CurvePoint.model_validate(line.to_json()) for line in status.curve],
            advice=schemas.AdviceLine(
                stop=status.advice.stop,
                sentence=status.advice.sentence,
                reasons=list(status.advice.reasons),
                gain=None if status.advice.gain is None else schemas.Expected(**vars(status.advice.gain)),
            ),
            comparison=None if status.comparison is None else status.comparison.sentence,
            classes=dict(status.classes),
            people=[
                schemas.PersonLine(annotator=one.annotator, answers=one.answers, per_minute=one.per_minute)
                for one in people
            ],
            per_minute=rate,
            minutes_left=None if left is None or rate is None else round(left / rate, 1),
            agreements=[schemas.PairLine(**pair.to_json()) for pair in campaign.page.agreements()],
            disagreements=status.disagreements,
            training=schemas.TrainingInfo(
                state=status.training_state,
                error=status.training_error,
                waiting=max(0, status.waiting),
                batch=campaign.settings.batch,
            ),
            notes=list(status.notes),
        )

    @router.get("/review")
    def review(n: Annotated[int, Query(ge=1, le=200)] = 40) -> schemas.Review:
        """Labels that may be wrong, samples people disagree on, and notes."""
        return schemas.Review(
            suspects=[
                schemas.SuspectLine(
                    id=str(one.id),
                    label=plain(one.label),
                    text=text_of(one.label),
                    annotator=one.annotator,
                    predicted=one.predicted,
                    predicted_text=None if one.predicted is None else text_of(one.predicted),
                    probability=one.probability,
                    dual=one.dual or 0.0,
                )
                for one in campaign.review(n)
            ],
            disagreements=[
                schemas.DisagreementLine(
                    id=id,
                    opinions=[
                        schemas.Opinion(annotator=who, label=None if label is SKIP else label, text=text_of(label))
                        for who, label in said.items()
                    ],
                )
                for id, said in list(campaign.answers.disagreements().items())[:n]
            ],
            notes=[
                schemas.Remark(id=id, annotator=who, text=text)
                for id, said in campaign.page.notes().items()
                for who, text in said.items()
            ],
        )

    @router.get("/map")
    def pool() -> schemas.MapPoints:
        """The pool in two dimensions, as the newest model sees it; empty before the first training."""
        found = campaign.page.map()
        if found is None:
            return schemas.MapPoints(
                model=None, classes=[], ids=[], x=[], y=[], predicted=[], probability=[], labels=[], states=[]
            )
        texts: dict[str, int] = {}
        if campaign.settings.task == "classification":
            texts = {text_of(label): place for place, label in enumerate(campaign.classes)}

        def number(label: Any) -> float | None:
            if label is None:
                return None
            return texts.setdefault(text_of(label), len(texts)) if texts else float(label)

        predicted, labels = ([number(label) for label in some] for some in (found.predicted, found.labels))
        return schemas.MapPoints(
            model=found.model,
            classes=list(texts),
            ids=list(found.ids),
            x=list(found.x),
            y=list(found.y),
            predicted=predicted,
            probability=list(found.probability),
            labels=labels,
            states=list(found.states),
        )

    @router.get("/alike")
    def alike(
        predicted: Annotated[str, Query(max_length=1000)] = "", n: Annotated[int, Query(ge=1, le=200)] = 24
    ) -> schemas.AlikeSamples:
        """Samples to confirm together: the model takes them for one class, and they are near each other."""
        labels = {text_of(label): label for label in campaign.classes} if predicted else {}
        found = campaign.page.alike(n, labels.get(predicted))
        if found is None:
            return schemas.AlikeSamples(model=None, classes=[], predicted=None, samples=[])
        return schemas.AlikeSamples(
            model=found.model,
            classes=[schemas.AlikeClass(text=text_of(label), samples=n) for label, n in found.open.items()],
            predicted=text_of(found.predicted),
            samples=[
                schemas.AlikeSample(id=id, probability=chance)
                for id, chance in zip(found.ids, found.probability, strict=True)
            ],
        )

    @router.get(
        "/events",
        response_class=StreamingResponse,
        responses={200: {"description": "A stream of events", "content": {"text/event-stream": {}}}},
    )
    async def stream(request: Request) -> StreamingResponse:
        """Server-sent events: ``pulse`` whenever answers, the model or the training changed."""
        opened = events.open(person_of(request), request.state.cookies)
        if opened is None:
            raise HTTPException(429, "too many pages are open; close some of them")
        return opened

    @router.get(
        "/export",
        response_class=Response,
        responses={200: {"description": "The labels that count", "content": {kind: {} for kind in EXPORTS.values()}}},
    )
    def export(format: Literal["csv", "jsonl"] = "csv") -> Response:
        """The labels that count, as a file that `ally import` reads. For the owner."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"labels.{format}"
            campaign.export(path)
            data = path.read_bytes()
        name = f'attachment; filename="labels.{format}"'
        return Response(data, media_type=EXPORTS[format], headers={"Content-Disposition": name})

    @router.patch("/settings")
    def change(body: schemas.Changes) -> schemas.Changes:
        """Change the classes or the budget. For the owner."""
        campaign.change(**body.model_dump(exclude_unset=True))
        return body

    @router.post("/training")
    def train(body: schemas.Train) -> schemas.Started:
        """Train now, in a separate process. For the owner."""
        return schemas.Started(started=not campaign.page.pulse().training and campaign.retrain(wait=False) is None)

    @router.get("/links")
    def links() -> schemas.Links:
        """Who has access. For the owner."""
        return schemas.Links(
            links=[
                schemas.LinkLine(annotator=person.annotator, role=person.role, state="in" if state == "in" else "link")
                for person, state in access.people()
            ]
        )

    @router.post("/links")
    def new_link(body: schemas.NewLink) -> schemas.Link:
        """A new one-time link for an annotator. For the owner."""
        if access.alone is not None:
            raise HTTPException(409, "the page is open on this machine only; end it and start `ally label --share`")
        return schemas.Link(annotator=body.annotator, secret=access.new_link(body.annotator))

    @router.post("/links/end")
    def end_link(body: schemas.EndLink) -> schemas.Links:
        """Revoke an annotator's access; the answers stay. For the owner."""
        access.end(body.annotator)
        return links()


def _short(name: str) -> str:
    """The campaign without its folder, or its server and what else stands in its address."""
    return (name.partition("?")[0] if "://" in name else name).rsplit("/", 1)[-1].removesuffix(".db")


def _range(numbers: list[float]) -> schemas.Range | None:
    if not numbers:
        return None
    least, low, middle, high, most = (float(value) for value in np.quantile(numbers, [0, 0.25, 0.5, 0.75, 1]))
    return schemas.Range(least=least, low=low, middle=middle, high=high, most=most)
