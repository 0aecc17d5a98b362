"""Routes for labelling: queries, samples and answers."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Query, Request, Response
from fastapi.responses import FileResponse
from starlette.exceptions import HTTPException

from ally.campaign import Campaign
from ally.campaign.telling import PageAnswer, Taken
from ally.errors import AnswerConflict, AnswerError, InputError, PoolExhausted
from ally.types import SKIP
from ally.web import schemas
from ally.web.readable import asked, plain, text_of
from ally.web.routing import Routes, person_of
from ally.web.shared_flush import Gatherer

SampleId = Annotated[str, Query(min_length=1, max_length=1000)]
DAY = 86400
LINKS = {
    "itself": {"operationId": "query", "parameters": {"number": "$response.body#/query"}},
    "release": {"operationId": "release", "parameters": {"number": "$response.body#/query"}, "requestBody": {}},
    "first sample": {"operationId": "sample", "parameters": {"id": "$response.body#/samples/0/id"}},
    "its image": {"operationId": "image", "parameters": {"id": "$response.body#/samples/0/id"}},
}
"""What can be done with the answer of a query."""


def add_routes(router: Routes, campaign: Campaign, gatherer: Gatherer) -> None:
    @router.post("/queries", responses={200: {"links": LINKS}})
    async def ask(body: schemas.NewQuery, request: Request) -> schemas.QueryInfo:
        """The next samples, reserved for you for a while. The same key returns the same query."""
        who = person_of(request).annotator

        def work() -> schemas.QueryInfo:
            try:
                found = campaign.ask(body.n, annotator=who, key=body.key, at_most=True)
            except PoolExhausted as none:
                lease = campaign.settings.lease_seconds
                return schemas.QueryInfo(
                    query=None, until=0.0, lease_seconds=lease, model=None, samples=[], ended=_ended(none)
                )
            return _query(campaign, found)

        return await gatherer.call(work)

    @router.get("/queries/{number}")
    def query(number: schemas.Number, request: Request) -> schemas.QueryInfo:
        """One of your queries."""
        return _query(campaign, _own(campaign, number, request))

    @router.post("/queries/{number}/release")
    def release(number: schemas.Number, body: schemas.Release, request: Request) -> schemas.Released:
        """Release samples of a query, all or some, so that others can label them."""
        _own(campaign, number, request)
        return schemas.Released(released=campaign.release(number, body.only))

    @router.get("/samples")
    def sample(id: SampleId) -> schemas.SampleContent:
        """What a sample looks like: the size of its image, its text, its columns."""
        return schemas.SampleContent.model_validate(campaign.page.content(id).to_json())

    @router.get("/samples/label")
    def label(id: SampleId) -> schemas.LabelOf:
        """How a sample is labelled now."""
        texts = dict.fromkeys(text_of(label) for label in campaign.page.opinions(id).values())
        return schemas.LabelOf(id=id, text=" / ".join(texts) or None)

    @router.get(
        "/samples/image",
        response_class=Response,
        responses={
            200: {"description": "PNG or JPEG, upright, encoded anew", "content": {"image/png": {}, "image/jpeg": {}}},
            206: {"description": "A part of it", "content": {"image/png": {}, "image/jpeg": {}}},
            304: {"description": "Not changed"},
            416: {"description": "No such part"},
        },
    )
    def image(
        request: Request,
        id: SampleId,
        size: Literal["thumb", "view", "large"] = "view",
        v: Annotated[str, Query(max_length=100)] = "",
    ) -> Response:
        """The image of a sample: thumb (192 pixels), view (1600) or large (4096)."""
        found = campaign.page.picture(id, size)
        tag = f'"{found.stamp}-{size}"'
        kept = f"private, max-age={DAY}, immutable" if v == found.stamp else "private, no-cache"
        headers = {"ETag": tag, "Cache-Control": kept}
        if tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return FileResponse(found.path, media_type=found.mime, headers=headers)

    @router.post("/answers")
    async def answer(body: schemas.SentAnswers, request: Request) -> schemas.Outcomes:
        """Answers, each with its own key; an answer retried with the same key is recorded once."""
        who = person_of(request).annotator
        given = [_given(one, who) for one in body.answers]
        possible = [one for one in given if isinstance(one, PageAnswer)]
        done = iter(await gatherer.tell(possible) if possible else [])
        outcomes = [
            _outcome(sent.key, next(done) if isinstance(one, PageAnswer) else one)
            for sent, one in zip(body.answers, given, strict=True)
        ]
        return schemas.Outcomes(outcomes=outcomes)

    @router.get("/answers")
    def answers(request: Request, n: Annotated[int, Query(ge=1, le=200)] = 20) -> schemas.GivenAnswers:
        """Your last answers that count, newest first."""
        who = person_of(request).annotator
        notes = campaign.page.notes()
        return schemas.GivenAnswers(
            answers=[
                schemas.GivenAnswer(
                    number=said.number,
                    id=said.sample,
                    label=said.value,
                    text=text_of(said.value if said.kind == "label" else None),
                    skip=said.kind == "skip",
                    at=said.at,
                    note=notes.get(said.sample, {}).get(who),
                )
                for said in campaign.page.last_answers(n, annotator=who)
            ]
        )

    @router.post("/undo")
    async def undo(body: schemas.Undo, request: Request) -> schemas.UndoneAnswer:
        """Undo your last answer, or the one with this number."""
        who = person_of(request).annotator
        taken = await gatherer.call(lambda: campaign.undo(annotator=who, number=body.number, key=body.key))
        return schemas.UndoneAnswer(
            id=str(taken.id), label=plain(taken.label), skip=taken.kind == "skip", number=taken.number
        )

    @router.post("/notes")
    async def note(body: schemas.NewNote, request: Request) -> schemas.Noted:
        """Save a note about a sample; an empty one removes it. Retried with the same key, it is saved once."""
        who = person_of(request).annotator
        await gatherer.call(lambda: campaign.page.note(body.id, body.text, annotator=who, key=body.key))
        return schemas.Noted(id=body.id, text=body.text)


def _own(campaign: Campaign, number: int, request: Request) -> Any:
    """A query of the caller; for other people's queries, not even their existence is revealed."""
    try:
        found = campaign.query(number)
    except AnswerError:
        found = None
    if found is None or found.annotator != person_of(request).annotator:
        raise HTTPException(404, f"you have no query {number}; ask for one")
    return found


def _ended(none: PoolExhausted) -> str:
    if none.pending:
        return f"The last {none.pending} samples are reserved for other people or tabs, until the reservation ends."
    return "Every sample is labelled or skipped."


def _query(campaign: Campaign, found: Any) -> schemas.QueryInfo:
    settings = campaign.settings
    campaign.page.expect(str(sample.id) for sample in found.samples)
    numbers = campaign.page.numbers() if settings.task == "regression" else ()
    return schemas.QueryInfo(
        query=found.id,
        until=found.until,
        lease_seconds=settings.lease_seconds,
        model=found.model,
        samples=[asked(sample, numbers) for sample in found.samples],
    )


def _given(sent: schemas.SentAnswer, who: str) -> PageAnswer | InputError:
    if sent.skip == (sent.label is not None):
        return AnswerError(f"the answer to {sent.id!r} needs either a label or a skip")
    label = SKIP if sent.skip else sent.label
    extra = {"expects": sent.expects} if "expects" in sent.model_fields_set else {}
    return PageAnswer(sent.id, label, who, sent.key, sent.query, **extra)


def _outcome(key: str, done: Taken | InputError) -> schemas.Outcome:
    if isinstance(done, Taken):
        before = plain(done.before)
        return schemas.Outcome(
            key=key,
            state="recorded",
            number=done.number,
            repeated=done.repeated,
            before=before,
            before_by=done.before_by,
            detail=done.slip,
        )
    if isinstance(done, AnswerConflict):
        return schemas.Outcome(
            key=key,
            state="conflict",
            number=done.number or None,
            before=done.label,
            before_by=done.annotator or None,
            detail=str(done),
        )
    return schemas.Outcome(key=key, state="refused", detail=str(done))
