"""Many requests of one kind, a few of them at once: a job of a thousand vertices is read in seconds, and its JobManager is not flooded."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from multiprocessing.pool import ThreadPool
from typing import Any

from sim.recordings.source.rest.client import Client, RestError

AT_ONCE = 8  # requests; Flink answers with four threads (rest.server.numThreads), the others are on their way
FEW = 32  # requests that are sent one after the other, as for a job of tens of vertices


def answers_of(client: Client, questions: Sequence[tuple[str, str]]) -> Generator[Any | RestError, None, None]:
    """The answer or the error of each question (path, name in the budget), in their order.

    Close it, and the questions that were not sent are not sent.  The threads do not keep a program from ending.
    """

    def answer(question: tuple[str, str]) -> Any | RestError:
        path, kept_as = question
        try:
            return client.get(path, kept_as=kept_as)
        except RestError as error:
            return error

    if len(questions) <= FEW:
        yield from map(answer, questions)
        return
    with ThreadPool(AT_ONCE) as pool:
        yield from pool.imap(answer, questions)
