"""Plans the repair of a file: rounds of edits, each checked again, until no more rewrites apply."""

import ast
import re
import traceback
import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from pathlib import Path

import libcst as cst

from breakscan.check.pipeline.checker import ON_PURPOSE, Checker
from breakscan.check.pipeline.rewrite_facts import Studies, Study
from breakscan.fix.apply import applied, overlap
from breakscan.fix.result import Applied, FileRepair, Reason, Refused, assumes, differs, in_one_line
from breakscan.fix.rewrites import load_rewrite
from breakscan.fix.source_map import SourceMap
from breakscan.fix.support.context import Declined, Edit, FileTree, NotKnown, OtherForm, RewriteContext
from breakscan.fix.support.purity import reads_code
from breakscan.model.findings import Confidence, Finding, Kind, RewriteOffer, Site, SourceError, Verdict
from breakscan.rulebook.config import FileSettings
from breakscan.rulebook.library import Library
from breakscan.source.module import SourceModule, SourceProblem, read_source
from breakscan.source.paths import display_path
from breakscan.source.python_text import marks, python_text

MOST_ROUNDS = 60
"""The limit of rounds for a file. Edits that are nested more deeply are offered by the next run."""

LAST_RESORT = "disable-function"
"""The rewrite that is tried for every graph break, after those that its rule names."""

ENABLES = "enable-function"
"""The rewrite with which another function is compiled: it must not break there."""

NEED_A_RUN = frozenset({LAST_RESORT, ENABLES, "split-experts"})
"""Rewrites that only a run shows to be of use."""

FOR_THE_COMPILER = frozenset({"assert-async", "early-exit", "is-compiling-guard"})
"""Rewrites that are there for the compiler alone: of no use in a function that breaks all the same."""

FROM_RECORDING = differs("values must be of the types, dtypes and ranks that the recorded run had")

Key = tuple[str, str | None, str]
"""A finding regardless of its line: rule, function and text."""
Place = tuple[str, int, int, str]
"""Path, line, column and rule of a finding."""


@dataclass(frozen=True, slots=True)
class WantedRewrites:
    """The rewrites that the user wants.

    ``ids`` restricts them (None: all).  ``places`` (None: everywhere) restricts the findings, given by path, line,
    column and rule in the file before any rewrite, each with the one rewrite that is wanted there.  ``useful`` leaves
    out edits that are of use only with others, or as a run shows."""

    ids: frozenset[str] | None = None
    places: Mapping[Place, str] | None = None
    useful: bool = False


GUESSED = "what a value is here is only guessed from its uses: annotate it, or add a --recording"
"""The reason why a finding of ``check`` stays that rewrites do not see: their facts leave out what is only likely."""


MAGIC_INSIDE = "the code to rewrite holds a magic command of the notebook"
AFTER_UNSAFE = differs("it needs other edits of this file, which are not safe")
START_UP = "it runs when an object is made, and not in each call"
INVALID = "the edit that was tried would not be valid Python"


@dataclass(frozen=True, slots=True)
class _Chosen:
    finding: Finding
    rewrite: str
    edit: Edit
    imports: frozenset[str]


def repair_file(
    path: Path,
    roots: Sequence[Path],
    settings: FileSettings,
    wanted: WantedRewrites,
    studies: Studies | None = None,
    observed: Studies | None = None,
    findings: Sequence[Finding] | None = None,
    text: str | None = None,
) -> FileRepair:
    """Returns the repair of the file at an absolute path, which the compiler reaches from the files ``roots``. Writes
    nothing.

    ``studies`` are shared with other files, by default with none; ``observed`` are those that take the observations of
    the settings for true. ``findings`` are those of ``check`` in the file, if it has been checked without observations.
    ``text`` is its Python text, where there is no file to be written."""
    display, own = display_path(path, Path.cwd()), settings.of(path)
    studies = studies or Studies(settings, [path])
    try:
        data = read_source(path, display) if text is None else b""
        before = python_text(data, path, display) if text is None else text
        planner = _Planner(path, display, data, before, roots, own.library, wanted)
        if (reason := _why_generated(before)) is not None:
            found = studies.study(path, before, roots).findings if findings is None else findings
            return planner.declined(found, reason)
    except SourceProblem as problem:
        return FileRepair(path, display, errors=(problem.error,))
    if observed is None and own.observations is not None:
        observed = Studies(settings, [path], Checker(settings, observing=True))
    return planner.run(studies, observed, findings or ())


_GENERATED = re.compile(r"\bauto(?:matically |-)?generated\b(?: from (?P<source>[\w./\\-]+\w))?", re.IGNORECASE)
_KEPT = re.compile(r"\bdo not (?:edit|modify|change)\b|\bautomatically generated from\b", re.IGNORECASE)


def _why_generated(text: str) -> str | None:
    """The reason not to edit a file whose comments at the top say that a program writes it; None for other files."""
    top = "".join(takewhile(lambda line: line.lstrip()[:1] in ("", "#"), text.splitlines(keepends=True)))
    found = _GENERATED.search(top)
    if found is None or not _KEPT.search(top):
        return None
    source = found["source"]
    where = f"from `{source}`: change the code there" if source else "by a program: change what it is generated from"
    return f"this file is generated {where}"


@dataclass(eq=False)
class _Planner:
    path: Path
    display: str
    data: bytes
    before: str
    roots: Sequence[Path]
    library: Library
    wanted: WantedRewrites
    failed: dict[tuple[Key, str], str] = field(default_factory=dict)
    """Rewrites that were tried and did not help, with the reason."""
    in_vain: dict[tuple[str, Site, str], str] = field(default_factory=dict)
    """Edits that help nothing in the end, by rule, site before any edit and rewrite, with the reason."""
    studies: Studies = field(init=False)
    from_recording: bool = False
    """True if ``studies`` take the values of a recorded run for true: then every edit assumes them."""
    left: dict[tuple[str, Site], Refused] = field(default_factory=dict)
    """The findings that stay in this pass, without reasons where no rewrite is known."""
    known: set[tuple[str, Site]] = field(default_factory=set)
    """The findings of the facts that edits rest on, in the text as it is: ``check`` may have more."""

    def _start(self) -> None:
        """Begins with the text before any edit: ``lines`` are the origins of the lines of the current text, ``safe``
        is the text with the safe edits alone."""
        self.applied: list[Applied] = []
        self.left = {}
        self.lines, self.safe = SourceMap.unchanged(self.before), self.before

    def run(self, studies: Studies, observed: Studies | None, findings: Sequence[Finding]) -> FileRepair:
        """The repair of the file by the code alone, then with the values of a recorded run.  ``findings`` are those of
        ``check``: each gets an outcome."""
        errors: dict[SourceError, None] = {}
        while True:
            self._start()
            text: str = self.before
            stay: dict[tuple[str, Site], Refused] = {}
            for these in (studies, observed):
                if these is not None:
                    self.studies = these
                    self.failed.clear()
                    self.from_recording = these is observed
                    text, found = self._rounds(text)
                    errors |= dict.fromkeys(found)
                    stay |= self.left
            in_vain = self._in_vain(stay.values()) if self.wanted.useful else {}
            if self.in_vain.keys() >= in_vain.keys():
                break
            self.in_vain |= in_vain
        guessed = [] if errors else [one for one in findings if (one.rule, one.site) not in self.known]
        self._decline(guessed, GUESSED)
        fixed = {(one.finding.rule, one.finding.site) for one in self.applied}
        left = [one for key, one in (stay | self.left).items() if key not in fixed]
        return self._repair(text, left, [error for error in errors if error.path == self.display])

    def _in_vain(self, stay: Iterable[Refused]) -> dict[tuple[str, Site, str], str]:
        """Returns the edits that help nothing, because their line, or for those that are for the compiler alone their
        function, breaks all the same."""
        breaks = [one.finding for one in stay if one.finding.kind is Kind.GRAPH_BREAK]
        in_vain = {}
        for one in self.applied:
            own = one.finding
            is_for_compiler = one.rewrite in FOR_THE_COMPILER
            for other in breaks:
                is_there = own.site.line <= other.site.line <= own.site.end_line
                is_sure = other.confidence not in (Confidence.CONDITIONAL, Confidence.POSSIBLE)
                has_setting = any("capture_" in remedy for remedy in other.remedies)
                is_same = is_for_compiler and other.function == own.function and is_sure and not has_setting
                if is_there or is_same:
                    reason = f"it would gain nothing: line {other.site.line} breaks the graph all the same"
                    in_vain[own.rule, own.site, one.rewrite] = reason
        return in_vain

    def declined(self, findings: Sequence[Finding], reason: str) -> FileRepair:
        """The repair of a file in which every rewrite declines for the same reason."""
        self._start()
        self._decline(findings, reason)
        return self._repair(self.before, [*self.left.values()])

    def _repair(self, text: str, stay: Sequence[Refused], errors: Sequence[SourceError] = ()) -> FileRepair:
        applied = sorted(self.applied, key=lambda one: place_of(one.finding))
        refused = tuple(one for one in stay if one.reasons)
        without = tuple(one.finding for one in stay if not one.reasons)
        texts = self.data, self.before, self.safe, text
        return FileRepair(self.path, self.display, *texts, tuple(applied), refused, without, tuple(errors))

    def _decline(self, findings: Sequence[Finding], reason: str) -> None:
        """Records findings for which every rewrite declines for the same reason, and no others."""
        self.left = {}
        for finding in (replace(one, behind=None) for one in findings):
            if (ids := self._ids(finding)) is not None:
                self._stays(finding, ids, [Reason(one, reason, one != LAST_RESORT, against=False) for one in ids])

    def _stays(self, finding: Finding, ids: Sequence[str], reasons: Sequence[Reason]) -> None:
        """Records a finding without an edit.  That the last resort alone declines is no reason worth a report."""
        says_why = bool(ids) and (list(ids) != [LAST_RESORT] or self.wanted.ids is not None)
        if ids or not self._offered(finding):
            self.left[finding.rule, finding.site] = Refused(finding, tuple(reasons) if says_why else ())

    def _rounds(self, text: str) -> tuple[str, Sequence[SourceError]]:
        try:
            seen = self.studies.study(self.path, text, self.roots)
            if text == self.before:
                self.known |= {(one.rule, one.site) for one in seen.findings}
            tree: FileTree | None = None
            unsafe = self.from_recording
            for _ in range(MOST_ROUNDS):
                if not seen.findings:
                    self.left = {}
                    break
                if tree is None or tree.text != text:
                    tree = FileTree(text, seen.facts)
                if chosen := self._choose(tree, seen, unsafe):
                    text, seen = self._take(tree, seen, chosen, unsafe)
                elif unsafe:
                    break
                else:
                    unsafe = True
                if not unsafe:
                    self.safe = text
        except SourceProblem as problem:
            return text, [problem.error]
        except ValueError as error:
            return text, [SourceError(self.display, 1, 1, f"cannot be rewritten: {error}")]
        return text, seen.errors

    # -- a round ------------------------------------------------------------------------------------------------

    def _choose(self, tree: FileTree, seen: Study, unsafe: bool) -> list[_Chosen]:
        """Chooses the edits of this round, none of which overlap, and records the outcome of the other findings.
        ``unsafe`` edits come after all safe ones."""
        offered: list[_Chosen] = []
        chosen: list[_Chosen] = []
        self.left = {}
        for finding in seen.findings:
            origin = self.lines.moved(finding)
            if finding.rule in ON_PURPOSE and (origin.rule, origin.site) not in self.known:
                continue  # what an edit disabled
            ids = self._ids(origin)
            if ids is None:
                continue
            if self.wanted.useful and (finding.function or "").rpartition(".")[2] in _WHERE_MADE:
                self._stays(origin, ids, [Reason(one, START_UP) for one in ids])
                continue
            edit, reasons = self._try(tree, seen, finding, ids)
            if edit is None:
                self._stays(origin, ids, reasons)
            elif unsafe or edit.edit.is_safe:
                offered.append(edit)
        better = [one for one in offered if one.rewrite != LAST_RESORT]
        for one in better or offered:
            if not any(overlap(tree, one.edit, other.edit) for other in chosen):
                chosen.append(one)
        return chosen

    def _offered(self, finding: Finding) -> tuple[str, ...]:
        rule = self.library.get(finding.rule)
        if rule is None:
            return ()
        is_break = rule.kind is Kind.GRAPH_BREAK and rule.id not in ON_PURPOSE
        offered = (*rule.rewrites, LAST_RESORT) if is_break else rule.rewrites
        return tuple(one for one in offered if one not in NEED_A_RUN) if self.wanted.useful else offered

    def _ids(self, finding: Finding) -> list[str] | None:
        """The rewrites to try for a finding of the file before any edit; None if nothing is wanted there."""
        ids = [one for one in self._offered(finding) if self.wanted.ids is None or one in self.wanted.ids]
        if self.wanted.places is not None:
            there = self.wanted.places.get(place_of(finding))
            if there is None:
                return None
            ids = [one for one in ids if one == there]
        return ids

    def _try(
        self, tree: FileTree, seen: Study, finding: Finding, ids: Collection[str]
    ) -> tuple[_Chosen | None, list[Reason]]:
        """Returns the first safe edit, or else the first one, and the reasons of the rewrites that decline."""
        unsafe: _Chosen | None = None
        reasons: list[Reason] = []
        for one in ids:
            if unsafe is not None and one == LAST_RESORT:
                break
            found = self._edit(tree, seen, finding, one)
            if isinstance(found, Reason):
                reasons.append(found)
            elif found.edit.is_safe:
                return found, reasons
            else:
                unsafe = unsafe or found
        return unsafe, reasons

    def _edit(self, tree: FileTree, seen: Study, finding: Finding, rewrite: str) -> _Chosen | Reason:
        """Returns the edit that a rewrite makes for a finding, or the reason why it declines."""
        reason = self.failed.get((_key(finding, seen.module), rewrite))
        if reason is None and self.in_vain:
            reason = self.in_vain.get((finding.rule, self.lines.moved(finding).site, rewrite))
        node = tree.at(finding.site)
        if reason is not None or node is None:
            return Reason(rewrite, reason or "there is no code at the site")
        others = [other for other in seen.findings if other.function == finding.function]
        context = RewriteContext(tree, finding, node, others)
        try:
            edit = _edit(context, rewrite)
        except Declined as declined:
            near = not isinstance(declined, OtherForm) and rewrite != LAST_RESORT
            return Reason(rewrite, in_one_line(str(declined)), near, not isinstance(declined, NotKnown))
        except Exception as error:
            # A bug at one site must not prevent the repair of the others.
            where = traceback.extract_tb(error.__traceback__)[-1]
            at = f"{error!r} in {Path(where.filename).name}:{where.lineno}"
            return Reason(rewrite, f"a bug in breakscan, please report it: {at}")
        if self.from_recording:
            edit = replace(edit, differences=[*edit.differences, FROM_RECORDING])
        return _Chosen(finding, rewrite, edit, frozenset(context.imports))

    def _take(self, tree: FileTree, seen: Study, chosen: list[_Chosen], unsafe: bool) -> tuple[str, Study]:
        """Returns the text after a round. Edits that do not help are left out and not tried again."""
        while chosen:
            imports = sorted({name for one in chosen for name in one.imports})
            after: Study | None = None
            try:
                text = applied(tree, [one.edit for one in chosen], imports)
                if marks(text) != marks(tree.text):
                    useless = dict.fromkeys(range(len(chosen)), MAGIC_INSIDE)
                elif not _compiles(text):
                    useless = dict.fromkeys(range(len(chosen)), INVALID)
                else:
                    after = self.studies.study(self.path, text, self.roots)
                    useless = _useless(seen, after, chosen)
            except (SourceProblem, cst.ParserSyntaxError):
                useless = dict.fromkeys(range(len(chosen)), INVALID)
            if after is not None and not useless:
                done: Sequence[_Chosen] = (*chosen, *_along(tree, seen, after, chosen))
                if unsafe:
                    unsafe_too = [replace(one.edit, differences=one.edit.differences or [AFTER_UNSAFE]) for one in done]
                    done = [replace(one, edit=edit) for one, edit in zip(done, unsafe_too, strict=True)]
                for one in done:
                    offer = RewriteOffer(one.rewrite, "safe" if one.edit.is_safe else "unsafe")
                    finding = replace(self.lines.moved(one.finding), rewrite=offer)
                    self.applied.append(Applied(finding, one.rewrite, tuple(one.edit.differences)))
                self.lines = self.lines.then(SourceMap.of_change(tree.text, text))
                return text, after
            if len(useless) == len(chosen) > 1:
                # One of them may invalidate the result of all, so they are tried one after the other.
                chosen = chosen[:1]
                continue
            helpful = {one.finding.function for number, one in enumerate(chosen) if number not in useless}
            for number, reason in useless.items():
                if chosen[number].finding.function in helpful:
                    continue  # what breaks now may be due to the other edit: it is tried again after that
                key = _key(chosen[number].finding, seen.module)
                self.failed[key, chosen[number].rewrite] = reason
            chosen = [one for number, one in enumerate(chosen) if number not in useless]
        return seen.module.text, seen


_WHERE_MADE = ("__init__", "__new__", "__post_init__")


def _edit(context: RewriteContext, rewrite: str) -> Edit:
    """The edit of a rewrite, with all that it changes."""
    edit = load_rewrite(rewrite)(context)
    if edit.is_safe and reads_code(context.tree.module):
        edit = replace(edit, differences=[assumes("nothing may read the code of this file, or what it prints")])
    return edit


def _compiles(text: str) -> bool:
    """True if Python compiles a text, in which notebooks may await at the top level."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(text, "<new text>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError):
            return False
    return True


def _along(tree: FileTree, before: Study, after: Study, chosen: Sequence[_Chosen]) -> list[_Chosen]:
    """Returns the findings that the edit of another finding has fixed as well, each with that edit."""
    own = {id(one.finding) for one in chosen}
    left = Counter(_key(finding, after.module) for finding in after.findings)
    # An edit may change the text of another finding, which is not fixed by that.
    gone = _by_rule(Counter(_key(finding, before.module) for finding in before.findings))
    gone -= _by_rule(left) + _by_rule(Counter(_key(one.finding, before.module) for one in chosen))
    along = []
    for finding in before.findings:
        rule, function, _ = key = _key(finding, before.module)
        if left[key]:
            left[key] -= 1
        elif id(finding) not in own and gone[rule, function]:
            site = finding.site.line, finding.site.column
            spans = ((one, tree.span(node)) for one in chosen for node in one.edit.replace)
            if holding := [one for one, at in spans if at[:2] <= site <= at[2:]]:
                gone[rule, function] -= 1
                along.append(replace(holding[0], finding=finding))
    return along


def _useless(before: Study, after: Study, chosen: Sequence[_Chosen]) -> dict[int, str]:
    """Returns, by number, the edits that do not remove their finding or that add another one, with the reason."""
    if set(after.errors) - set(before.errors):
        return dict.fromkeys(range(len(chosen)), "the edit that was tried could not be checked")
    were = Counter(_key(finding, before.module) for finding in before.findings)
    now = Counter(_key(finding, after.module) for finding in after.findings)
    meant = Counter(_key(one.finding, before.module) for one in chosen)
    # An edit may change the text of another finding that contains it, so the number of remaining findings decides.
    more = _by_rule(now) - (_by_rule(were) - _by_rule(meant))
    changed = now - were
    new: dict[str | None, list[tuple[Finding, str]]] = {}
    for finding in after.findings:
        rule, function, text = key = _key(finding, after.module)
        if key in changed and (rule, function) in more:
            new.setdefault(function, []).append((finding, f"`{text}` ({rule}) would break instead"))
    everywhere = [one for found in new.values() for one in found]
    useless = {}
    for number, one in enumerate(chosen):
        key = _key(one.finding, before.module)
        if now[key] > were[key] - meant[key]:
            useless[number] = "with the edit that was tried, the line would still break"
            continue
        for finding, reason in everywhere if one.rewrite == ENABLES else new.get(one.finding.function, ()):
            # Some rewrites are meant to turn a break that makes the function run eager into a clean split.
            if one.finding.verdict is not Verdict.EAGER or finding.verdict is Verdict.EAGER:
                useless[number] = reason
    return useless


def _by_rule(found: Counter[Key]) -> Counter[tuple[str, str | None]]:
    counts: Counter[tuple[str, str | None]] = Counter()
    for (rule, function, _), number in found.items():
        counts[rule, function] += number
    return counts


def _key(finding: Finding, module: SourceModule) -> Key:
    return finding.rule, finding.function, " ".join(module.segment(finding.site).split())


def place_of(finding: Finding) -> Place:
    """Returns a place as :class:`WantedRewrites` identifies it."""
    return finding.site.path, finding.site.line, finding.site.column, finding.rule
