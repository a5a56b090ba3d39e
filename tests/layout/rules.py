"""The rules of the tree's layout, each a function that returns its violations as sentences.

A tree is given by its root folder; object files by the build folder that CMake made from it. Nothing here
knows pytest: layout_test.py holds the real tree to these rules, rules_test.py plants violations and sees
them found.
"""

import concurrent.futures
import json
import os
import re
import subprocess
import tempfile
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

FUNCTION_LINES_MAX = 60
FILE_LINES_MAX = 800
OPENING_LINES = 180
OPENS_SOONER, OPENING_LINES_THERE = "coordinator/core/", 100  # where one story goes through many files
# Folders whose functions assert what they rely on, and what does: the macro, or the check of a whole struct.
ASSERTING_FOLDERS = ("coordinator/core", "agent/core", "agent/launch/core", "operator/core", "trainer/core", "trainer/exact", "cli/core",
                     "common/base", "common/model", "common/notice", "trainer/state", "trainer/engine")
ASSERTION = re.compile(r"\b(RM_ASSERT|\w*check_invariants|rdzv_check_settings|plan_check)\(")
ASSERTING_SLACK = 5  # percent above the noted share from which on more is to be noted

# A state's area that its agent reads; and the images of a tree of processes (told.check_meanings keeps their names apart).
STATES_SNAPSHOT = r"agent/(core|program|storage)/|agent/(app|main|worker_pages|launch/pair)\.|trainer/|common/(model|wire)/"
PROCESSES_SNAPSHOT = "agent/(snapshot|freeze)/"
# What one word means, and where it may mean that: a part of a name in C anywhere else is another meaning
# (docs/glossary.md), or a word that was given up for one that the field has.
WORDS = {
    "crew": "trainer/backend/cpu/model/", "desk": "tests/", "memo": "operator/", "misfit": "operator/|coordinator/core/rdzv_fault.c|"
    "coordinator/core/rdzv_fit.c", "plan": "operator/|trainer/backend/cpu/model/matmul.c", "snapshot": STATES_SNAPSHOT + "|" + PROCESSES_SNAPSHOT,
    "spare": "trainer/(state|engine|backend/(cpu/sums|cuda/gpu))/", "verdict": "trainer/",
    **dict.fromkeys(("chronicle", "depose", "deposed", "fleet", "heritage", "portrait", "unattended"), "nowhere/"),
}
BARE_VERBS = {"act", "add", "answer", "arm", "ask", "begin", "check", "choose", "describe", "done", "end", "fail", "fill", "find", "finish", "get",
              "give", "hear", "hold", "judge", "keep", "learn", "leave", "load", "look", "measure", "note", "print", "publish", "put", "receive", "refuse",
              "run", "say", "send", "serve", "set", "settle", "show", "spawn", "start", "step", "stop", "take", "tell", "watch", "work"}
# Whose names are hashed into a numerics id: a better one would cost every checkpoint its image (docs/exactness.md).
NAMES_HASHED = (("trainer/backend/cpu/model/numerics_cpu.cmake", "set(numerics_cpu_not"), ("trainer/backend/cuda/gpu/module.cmake", "set(numerics_gpu_files"))
# A comment that begins with these is about something that it does not name, unless a verb follows before the first full stop.
HEADLESS = {"As", "Both", "In", "Not", "Of", "Or", "With"}
VERBS = set("""
is are was were has have had does do did can may must shall will would could should might need needs means mean holds hold says
say tells tell knows know takes take makes make gives give goes go comes come counts count waits wait reads read writes write
stands stand lies lie stays stay ends end begins begin learns learn speaks follows follow starts start fails fail keeps keep gets
get asks ask brings bring belongs belong happens happen costs cost falls fall shows show leaves leave adds add sends send runs run
moves move answers answer works works lasts works sees see lets let wants want serves serve names name uses use finds find calls
call closes looks look owns own turns turn trains train holds passes pass puts put becomes become
""".split())
SOURCE_FOLDERS = ("common", "coordinator", "agent", "trainer", "cli", "operator")
C_LIKE = (".c", ".h", ".cu")

# Third-party headers and the folder in which one single .c file may include them.
THIRD_PARTY = {
    r"uv\.h": "common/loop",
    r"libwebsockets\.h": "common/net",
    r"criu/criu\.h": "agent/snapshot/criu",
    r"curl/.*": "common/net",
    r"expat\.h": "common/storage/object",
    r"jansson\.h": "common/wire",
    r"openssl/.*": "common/os",
    r"xxhash\.h": "common/os",
    r"yaml\.h": "common/job",
    r"(oneapi/)?dnnl/.*|dnnl.*\.h|omp\.h": "trainer/backend/cpu/model",
}

# Headers of C and Linux. What is in neither list is refused, so that a new dependency is a decision.
SYSTEM_HEADERS = re.compile(
    r"(ctype|errno|fenv|float|inttypes|langinfo|limits|locale|math|setjmp|signal|stdalign|stdarg|stdatomic|stdbool"
    r"|stddef|stdint|stdio|stdlib|stdnoreturn|string|strings|threads|time|wchar|wctype"
    r"|dirent|dlfcn|endian|fcntl|fnmatch|fts|ftw|getopt|grp|langinfo|libgen|malloc|netdb|poll|pthread|pwd|sched|semaphore|spawn|syslog"
    r"|termios|unistd|cpuid|immintrin|x86intrin|xmmintrin|emmintrin|pmmintrin|nmmintrin)\.h"
    r"|(sys|linux|netinet|arpa|net|asm)/[a-z_]+\.h")

BANNED = {"strcpy", "strcat", "sprintf", "vsprintf", "stpcpy", "atoi", "atol", "atoll", "atof", "strtok", "gets",
          "sleep", "usleep", "nanosleep", "alloca"}

# An exit code as a number, or with a name of its own.
NUMBERED_EXIT = re.compile(
    r"\bexit_code\s*(=|==|!=)\s*\d"
    r"|\b(rdzv_give_up|rdzv_leave_out|rdzv_send_away|rdzv_tell_end|give_up|quit|fail|tell_failed)\([^;{}()]*?,\s*\d+\s*[,)]"
    r"|\benum\s*\{[^}]*\bEXIT_[A-Z_]+\s*=")

# Calls with one place each: (names, the file that may, why).
RESTRICTED = [
    ({"getenv", "secure_getenv"}, re.compile(r"common/os/config\.c|trainer/library/socket\.c"),
     "the environment is read in common/os/config.c, and in the users' library, which has nothing of ours"),
    ({"clock_gettime", "time", "gettimeofday", "clock", "timespec_get", "ftime"},
     re.compile(r"common/os/clock\.c"), "clocks are read in common/os/clock.c"),
    ({"exit", "_Exit", "quick_exit"}, re.compile(r"(.*/)?main\.c"), "only main.c ends the program"),
    ({"rand", "random", "srand", "drand48", "rand_r", "lrand48"}, re.compile(r"(?!)"),
     "chance comes from common/base/prng.h with a seed"),
]

# Pure cores: what they may use from outside the project. Memory is no business of the state machines.
PURE_CALLS = re.compile(
    r"mem(cpy|move|set|cmp|chr|mem)|str(len|nlen|cmp|ncmp|casecmp|ncasecmp|chr|rchr|str|spn|cspn|pbrk|error|error_r)"
    r"|__xpg_strerror_r|v?snprintf|strto(l|ul|ll|ull|d|f|imax|umax)|__isoc\d+_strto\w+|qsort|bsearch|abs|labs|llabs"
    r"|(sqrt|floor|ceil|trunc|round|rint|lrint|llrint|lround|llround|fabs|fmin|fmax|fmod|ldexp|frexp|scalbn|fma|copysign|isnan|isinf"
    r"|nearbyint|ilogb|log10|pow)f?|__ctype_(b|tolower|toupper)_loc|to(lower|upper)|is[a-z]+|__assert_fail|__errno_location"
    r"|__stack_chk_fail|_GLOBAL_OFFSET_TABLE_|__popcountdi2|__(asan|ubsan)_\w+|htonl|ntohl")
PURE_MEMORY = re.compile(r"malloc|calloc|realloc|free|reallocarray|strdup|strndup|aligned_alloc|abort|vasprintf")
OPENS_OR_FREES = re.compile(r".*_(open|free)")  # where a state machine may take and give back its memory
PURE_UNITS = [  # (source path pattern, may it allocate while running)
    (re.compile(r"agent/core/.*"), False),
    (re.compile(r"agent/launch/core/.*"), True),
    (re.compile(r"coordinator/core/.*"), False),
    (re.compile(r"coordinator/status/.*"), False),
    (re.compile(r"trainer/core/.*"), False),
    (re.compile(r"trainer/exact/.*"), False),
    (re.compile(r"common/model/.*"), False),
    (re.compile(r"trainer/tokens/.*"), True),
    (re.compile(r"operator/core/.*"), True),
    (re.compile(r"cli/core/.*"), True),
    (re.compile(r"common/base/.*"), True),
    (re.compile(r"common/notice/.*"), True),
    (re.compile(r"common/wire/message.*"), True),
]


@dataclass
class Layers:
    """What CMakeLists.txt declares: folder of each library or program -> folders that it may use; with: what its main.c may besides."""

    allowed: dict
    with_main: dict

    def folder_of(self, path):
        """The library that a file belongs to, None for a file outside all of them."""
        folder = str(Path(path).parent)
        return folder if folder in self.allowed else None


def read_layers(root):
    """Reads the rm_library and rm_program lines; what a library's dependencies use, it may use too."""
    text = re.sub(r"#.*", "", (Path(root) / "CMakeLists.txt").read_text())
    direct, with_main = {}, {}
    for kind, body in re.findall(r"\b(rm_library|rm_program)\(([^)]*)\)", text):
        words = body.split()
        folder = words[0] if kind == "rm_library" else words[1]
        groups = {None: []}
        for word in words[1 if kind == "rm_library" else 2:]:
            if word in ("DEPS", "LIBS", "WITH"):
                listed = groups.setdefault(word, [])
            else:
                listed.append(word)
        direct[folder], with_main[folder] = groups.get("DEPS", []), groups.get("WITH", [])
    folder_by_target = {folder.replace("/", "_"): folder for folder in direct}

    def closure(folder, seen):
        for dep in direct[folder]:
            used = folder_by_target.get(dep)
            if used and used not in seen:
                seen.add(used)
                closure(used, seen)
        return seen

    return Layers({folder: closure(folder, set()) for folder in direct},
                  {folder: {folder_by_target[name] for name in names} for folder, names in with_main.items()})


def sources(root, folders=SOURCE_FOLDERS, suffixes=(".c", ".h")):
    """Paths relative to the root, sorted."""
    root = Path(root)
    found = (p for folder in folders for p in (root / folder).rglob("*") if p.suffix in suffixes and p.is_file())
    return sorted(str(p.relative_to(root)) for p in found)


def without_comments(text, keep_strings=False):
    """C text with comments (and strings) blanked, so that words in them are not taken for code."""
    pattern = r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''

    def blank(match):
        if keep_strings and match.group(0)[0] in "\"'":
            return match.group(0)
        return re.sub(r"[^\n]", " ", match.group(0))

    return re.sub(pattern, blank, text, flags=re.DOTALL)


def includes(root, path):
    """(line, '"' or '<', header) of each #include of a file."""
    text = without_comments((Path(root) / path).read_text(), keep_strings=True)
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(r'\s*#\s*include\s*(["<])([^">]+)[">]', line)
        if match:
            yield number, match.group(1), match.group(2)


def check_include_graph(root):
    """No file includes a header of a layer that its own layer does not list; programs meet only in common/."""
    layers = read_layers(root)
    wrong = []
    for folder, used in sorted(layers.allowed.items()):
        top = folder.split("/")[0]
        wrong += [f"CMakeLists.txt: {folder} may not depend on {other}: programs meet only in common/"
                  for other in sorted(used) if other.split("/")[0] not in ("common", top)]
    for path in sources(root, suffixes=C_LIKE):
        own = layers.folder_of(path)
        if own is None:
            wrong.append(f"{path}: lies in no library or program of CMakeLists.txt")
            continue
        for line, mark, header in includes(root, path):
            if mark == "<":
                continue
            target = layers.folder_of(header)
            if target is None or not (Path(root) / header).exists():
                wrong.append(f"{path}:{line}: \"{header}\" is no header of this tree (paths start at its root)")
            elif path == f"{own}/main.c" and target in layers.with_main[own]:
                continue
            elif target != own and target not in layers.allowed[own]:
                wrong.append(f"{path}:{line}: {own} may not use {target} (\"{header}\")")
    return wrong


# The engine drives whoever computes by trainer/backend/backend.h; one file of it chooses who that is.
ENGINE, CHOOSES_BACKEND = "trainer/engine", "trainer/engine/engine_backend.c"


def check_backend_seam(root):
    """No file of the engine but one includes what is one backend's own."""
    return [f"{path}:{line}: the engine knows a backend by trainer/backend/backend.h alone; \"{header}\" is for {CHOOSES_BACKEND}"
            for path in sources(root, folders=(ENGINE,)) for line, mark, header in includes(root, path)
            if mark == '"' and header.startswith("trainer/backend/") and header.count("/") > 2 and path != CHOOSES_BACKEND]


@dataclass
class FileLayers:
    """What a folder's layers.txt says: its files bottom first with their layers, and [(layer, header, barred layers, functions)]."""

    layer: dict
    bridges: list

    def barred(self, path, used):
        """Whether `used` is of a layer that a bridge alone leads to from this file."""
        return any(self.layer.get(path) == who and self.layer.get(used) in layers for who, _, layers, _ in self.bridges)


def read_file_layers(path):
    """Reads a layers.txt; (FileLayers, sentences about what is listed twice)."""
    layer, bridges, wrong = {}, [], []
    for line in re.sub(r"#.*", "", Path(path).read_text()).splitlines():
        words = line.split()
        if words and words[0] == "bridge":
            at = words.index(":")
            bridges.append((words[1], words[2], set(words[3:at]), set(words[at + 1:])))
            continue
        for name in words[1:] if words[:1] != ["shared"] else []:  # told.py
            wrong += [f"{name} is listed twice"] if name in layer else []
            layer[name] = words[0]
    return FileLayers(layer, bridges), wrong


def declared(root, paths):
    """[(path, name, line)] of all functions that are declared and not defined there, by universal-ctags."""
    if not paths:
        return []
    text = subprocess.run(["ctags", "--output-format=json", "--languages=C", "--langmap=C:.c.h", "--kinds-C=p", "--fields=+n", "-f", "-", *paths],
                          cwd=root, check=True, text=True, stdout=subprocess.PIPE).stdout
    return [(t["path"], t["name"], t["line"]) for t in map(json.loads, text.splitlines())]


def check_file_includes(root, folder, table, paths):
    """A file includes headers of files before it in its folder, and none that a bridge alone leads to."""
    place, wrong = {name: at for at, name in enumerate(table.layer)}, []
    for path in paths:
        own = Path(path).stem
        for line, mark, header in includes(root, path):
            used = Path(header).stem
            if mark == "<" or str(Path(header).parent) != folder or used == own or used not in place:
                continue
            if place[used] >= place.get(own, len(place)):
                wrong.append(f"{path}:{line}: {used} stands above {own} in {folder}/layers.txt")
            elif table.barred(own, used):
                wrong.append(f"{path}:{line}: {table.layer[own]} reaches {table.layer[used]} over its bridge alone, not by {used}")
    return wrong


def check_declarations(root, folder, table, paths):
    """What a header declares is its own .c file's, but for a bridge's: that is of the barred layers, and all named."""
    defined = {(Path(path).stem, name) for path, name, _, _ in function_spans(root, paths)}
    headers = {header: (barred, names) for _, header, barred, names in table.bridges}
    wrong, found = [], {header: set() for header in headers}
    for path, name, line in declared(root, paths):
        own = Path(path).stem
        if own in headers:
            found[own].add(name)
            if not any(table.layer.get(stem) in headers[own][0] for stem, other in defined if other == name):
                wrong.append(f"{path}:{line}: {name} is not of what the bridge leads to")
        elif (own, name) not in defined:
            wrong.append(f"{path}:{line}: declares {name}, which is another file's")
    for header, (_, names) in headers.items():
        wrong += [f"{folder}/layers.txt: {header} and its list differ by {name}" for name in sorted(names ^ found[header])]
    return wrong


def check_file_layers(root):
    """The files of a folder with a layers.txt stand in it, bottom first, and use each other in that order."""
    wrong = []
    for text in sorted(Path(root).glob("*/**/layers.txt")):
        folder = str(text.parent.relative_to(root))
        table, twice = read_file_layers(text)
        paths = [path for path in sources(root) if str(Path(path).parent) == folder]
        stems = {Path(path).stem for path in paths}
        wrong += [f"{folder}/layers.txt: {why}" for why in twice]
        wrong += [f"{folder}/layers.txt: lacks {name}" for name in sorted(stems - set(table.layer))]
        wrong += [f"{folder}/layers.txt: there is no {name}" for name in sorted(set(table.layer) - stems)]
        wrong += check_file_includes(root, folder, table, paths) + check_declarations(root, folder, table, paths)
    return wrong


def check_third_party(root):
    """Each third-party header in one .c file of its folder; every other <header> is C's or Linux's."""
    wrong, seen = [], {}
    for path in sources(root, suffixes=C_LIKE):
        for line, mark, header in includes(root, path):
            if mark != "<" or SYSTEM_HEADERS.fullmatch(header):
                continue
            library = next((p for p in THIRD_PARTY if re.fullmatch(p, header)), None)
            if library is None:
                wrong.append(f"{path}:{line}: <{header}> is a dependency that nobody decided on")
            elif not path.endswith(".c") or str(Path(path).parent) != THIRD_PARTY[library]:
                wrong.append(f"{path}:{line}: <{header}> belongs into one .c file of {THIRD_PARTY[library]}")
            else:
                seen.setdefault(library, set()).add(path)
    for library, paths in seen.items():
        if len(paths) > 1:
            wrong.append(f"{', '.join(sorted(paths))}: all include {library}; one file should")
    return wrong


def calls(text, names):
    """(line, name) for each call of one of the names in C text; members and declarations of others aside."""
    pattern = re.compile(r"(?<![\w.>])(" + "|".join(sorted(names)) + r")\s*\(")
    clean = without_comments(text)
    for match in pattern.finditer(clean):
        yield clean.count("\n", 0, match.start()) + 1, match.group(1)


def check_banned_text(root):
    """Banned and restricted calls by their names in the text: a compiler may have turned the call into another.

    "clock" and "time" are left to the object files: as words they are members and locals, too."""
    wrong = []
    for path in sources(root, SOURCE_FOLDERS + ("tests",)):
        text = (Path(root) / path).read_text()
        wrong += [f"{path}:{line}: {name} is banned" for line, name in calls(text, BANNED)]
        if path.startswith("tests/"):
            continue
        for names, place, why in RESTRICTED:
            if not place.fullmatch(path):
                found = calls(text, names - {"time", "clock", "random"})
                wrong += [f"{path}:{line}: {name}: {why}" for line, name in found]
    return wrong


def check_exit_codes(root):
    """Exit codes have their names of common/base/exit_code.h wherever one is given, kept or compared."""
    wrong = []
    for path in sources(root):
        text = without_comments((Path(root) / path).read_text())
        for match in NUMBERED_EXIT.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            wrong.append(f"{path}:{line}: an exit code without its name of common/base/exit_code.h")
    return wrong


def object_files(build):
    """(source path, object path) of each object of the libraries and programs; tests' own are left out."""
    for found in sorted(Path(build).glob("CMakeFiles/*.dir/**/*.c.o")):
        inside = found.relative_to(Path(build) / "CMakeFiles")
        source = str(Path(*inside.parts[1:]))[:-len(".o")]
        if source.startswith(SOURCE_FOLDERS):
            yield source, found


def symbols(path, undefined):
    """Names that an object uses (undefined) or offers (defined, global)."""
    flag = "--undefined-only" if undefined else "--defined-only"
    text = subprocess.run(["nm", "--format=posix", "--extern-only", flag, str(path)], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    return {line.split()[0].split("@")[0] for line in text.splitlines() if line.strip()}


def check_symbols(root, build):
    """Banned and restricted calls as the linker sees them."""
    wrong = []
    for source, found in object_files(build):
        if not (Path(root) / source).exists():
            continue  # left over from a file that is gone
        used = {name.removeprefix("__").removesuffix("_chk") for name in symbols(found, True)}
        wrong += [f"{source}: calls {name}, which is banned" for name in sorted(used & BANNED)]
        for names, place, why in RESTRICTED:
            if not place.fullmatch(source):
                wrong += [f"{source}: calls {name}: {why}" for name in sorted(used & names)]
    return wrong


def who_uses_whom(root, build):
    """{source: sources whose functions or variables it uses}, as the linker sees it; main.c is nobody's."""
    objects = [(s, o) for s, o in object_files(build) if (Path(root) / s).exists() and Path(s).name != "main.c"]
    offers = {}
    for source, found in objects:
        for name in symbols(found, False):
            offers.setdefault(name, set()).add(source)
    return {source: {other for name in symbols(found, True) for other in offers.get(name, ()) if other != source}
            for source, found in objects}


def circles(graph):
    """Groups of two or more that all reach each other, each sorted."""
    def reach(start, way):
        seen, ahead = set(), [start]
        while ahead:
            for other in way.get(ahead.pop(), ()):
                if other not in seen:
                    seen.add(other)
                    ahead.append(other)
        return seen

    back = {}
    for source, used in graph.items():
        for other in used:
            back.setdefault(other, set()).add(source)
    found, done = [], set()
    for source in sorted(graph):
        if source in done or not graph[source] or source not in back:
            continue
        group = reach(source, graph) & reach(source, back)
        done |= group
        if len(group) > 1:
            found.append(sorted(group))
    return found


def read_pairs(path):
    """The pairs that may use each other: 'folder/one.c two.c: why' a line, '#' comments."""
    pairs = set()
    for line in Path(path).read_text().splitlines():
        words, _, why = line.split("#")[0].partition(":")
        if words.strip():
            one, two = words.split()
            assert why.strip(), f"{path}: {one} and {two} are not said to be a pair for a reason"
            pairs.add(tuple(sorted((one, str(Path(one).parent / two)))))
    return pairs


def check_circles(root, build, pairs):
    """No circle of files but pairs that are said to be one."""
    found = [tuple(group) for group in circles(who_uses_whom(root, build))]
    return ([f"{', '.join(group)} use each other in a circle: cut it, or say why it is a pair (tests/layout/pairs.txt)"
             for group in found if group not in pairs]
            + [f"{' and '.join(pair)} are said to be a pair, and are none any more" for pair in sorted(pairs - set(found))])


def allocates_while_running(root, source):
    """Names of functions, other than x_open and x_free, that take or give back memory."""
    text = (Path(root) / source).read_text()
    at = [line for line, _ in calls(text, {"malloc", "calloc", "realloc", "free", "strdup", "aligned_alloc"})]
    spans = function_spans(root, [source])
    return sorted({name for _, name, first, last in spans
                   if not OPENS_OR_FREES.fullmatch(name) and any(first <= line <= last for line in at)})


def check_pure_cores(root, build):
    """The pure cores use no I/O, clock, chance or threads; state machines take memory when opened only."""
    objects = [(s, o) for s, o in object_files(build) if (Path(root) / s).exists()]
    own = set().union(*(symbols(o, False) for _, o in objects)) if objects else set()
    wrong = []
    for source, found in objects:
        for pattern, memory in PURE_UNITS:
            if not pattern.fullmatch(source):
                continue
            for name in sorted(symbols(found, True) - own):
                if not PURE_CALLS.fullmatch(name) and not PURE_MEMORY.fullmatch(name):
                    wrong.append(f"{source}: uses {name}, but is a pure core")
            if not memory:
                wrong += [f"{source}: {name} takes or gives back memory, but is part of a pure core"
                          for name in allocates_while_running(root, source)]
    return wrong


def check_no_fault_points(programs):
    """A release holds no fault points: the variable that arms them is not in the programs."""
    wrong = []
    for program in programs:
        used = symbols(program, False)
        if "fault_point" in used:
            wrong.append(f"{program}: a release program holds fault points")
    return wrong


def check_tests_mirror(root):
    """The unit tests of a folder lie in the folder of its name below tests/unit."""
    layers, unit = read_layers(root), Path(root) / "tests/unit"
    folders = sorted({str(path.parent.relative_to(unit)) for path in unit.rglob("*_test.c")})
    return [f"tests/unit/{folder}: the tree has no folder {folder} to test" for folder in folders if folder not in layers.allowed]


def check_folders_are_told(root):
    """docs/architecture.md has each folder that is built, each program and each file of a layers.txt, README.md each page of docs/."""
    layers, told = read_layers(root), (Path(root) / "docs/architecture.md").read_text()
    programs = re.findall(r"\brm_program\(([\w-]+)", (Path(root) / "CMakeLists.txt").read_text())
    wrong = [f"docs/architecture.md: does not tell of {name}" for name in sorted(layers.allowed) + programs if f"`{name}`" not in told]
    for table in sorted(Path(root).glob("*/**/layers.txt")):
        wrong += [f"docs/architecture.md: does not tell of {name} ({table.parent.relative_to(root)})" for name in read_file_layers(table)[0].layer
                  if f"`{name}`" not in told]
    readme = (Path(root) / "README.md").read_text()
    return wrong + [f"README.md: does not link docs/{page.name}" for page in sorted((Path(root) / "docs").glob("*.md"))
                    if f"(docs/{page.name})" not in readme]


SKIPS = re.compile(r"pytest\.skip\(|\bskipif\(|\bimportorskip\(|\bcr_skip(_test)?\(")


def check_walks(root):
    """Files that the walks of docs/architecture.md pass open with what they are for, and have the functions named there."""
    text = (Path(root) / "docs/architecture.md").read_text().partition("## Six walks\n")[2].partition("\n## ")[0]
    paths = sources(root, suffixes=(".c",))
    wrong = [] if "`" in text else ["docs/architecture.md: no walk is left"]
    for match in re.finditer(r"`([\w/]+\.c)`(?:\*\*)?(?: \(`(\w+)`)?", text):
        name, function = match.groups()
        found = [path for path in paths if path == name or path.endswith("/" + name)]
        if not found:
            wrong.append(f"docs/architecture.md: a walk passes {name}, which is not there")
        elif not all((Path(root) / path).read_text().startswith("/* ") for path in found):
            wrong.append(f"docs/architecture.md: a walk passes {name}, which does not open with what it is for")
        elif function and not any(re.search(rf"^\w[^;\n]*\b{function}\(", (Path(root) / path).read_text(), re.M) for path in found):
            wrong.append(f"docs/architecture.md: a walk passes {function} in {name}, which has none")
    return wrong


def check_tables(root):
    """Each row of a table of Markdown has as many cells as its head: what is too much is not shown, by no word."""
    wrong = []
    for page in [*sorted((Path(root) / "docs").glob("*.md")), *sorted(Path(root).glob("*.md"))]:
        wide = 0
        for number, line in enumerate(page.read_text().splitlines(), 1):
            cells = len(re.findall(r"(?<!\\)\|", re.sub(r"`[^`]*`", "", line))) - 1 if line.startswith("|") else 0
            if wide and cells and cells != wide:
                wrong.append(f"{page.relative_to(root)}:{number}: {cells} cells in a table of {wide}")
            wide = (wide or cells) if cells else 0
    return wrong


def check_skips_are_told(root):
    """What can be skipped stands in docs/testing.md with what it lacks, and nothing else does."""
    section = (Path(root) / "docs/testing.md").read_text().partition("\n## What is skipped where\n")[2].partition("\n## ")[0]
    told = set(re.findall(r"`(?:tests/)?([\w/]+\.(?:py|c))`", "".join(line.split("|")[1] for line in section.splitlines() if line.startswith("|"))))
    found = {str(path.relative_to(root)) for path in (Path(root) / "tests").rglob("*") if path.suffix in (".py", ".c")
             and "layout" not in path.parts and SKIPS.search(path.read_text())}
    names = {path: name for path in found for name in told if path.endswith(f"/{name}")}
    return [f"{path}: can be skipped, and docs/testing.md does not say why" for path in sorted(found - set(names))] + \
           [f"docs/testing.md: {name} can't be skipped" for name in sorted(told - set(names.values()))]


FAULT_FILES = ("common/os/fault.c", "common/os/fault.h")
FAULT_CALLER = """#include "common/os/fault.h"
int caller(void)
{
    fault_who("x");
    fault_worker(1);
    fault_disarm();
    FAULT("x");
    FAULT_FLIP("x", 0, 0);
    return FAULT_FAILS("x", 5);
}
"""


def preset_variables(presets, name):
    """cacheVariables of a configure preset and of those that it inherits."""
    preset = next(p for p in presets if p["name"] == name)
    above = preset.get("inherits", [])
    found = {}
    for parent in reversed([above] if isinstance(above, str) else above):
        found |= preset_variables(presets, parent)
    return found | preset.get("cacheVariables", {})


def fault_symbols(root):
    """What fault.c and a caller of all that its header offers need or give of it, compiled as a release is."""
    with tempfile.TemporaryDirectory() as folder:
        caller = Path(folder) / "caller.c"
        caller.write_text(FAULT_CALLER)
        found = set()
        for source in (caller, Path(root) / FAULT_FILES[0]):
            subprocess.run(["gcc", "-O0", "-w", "-D_GNU_SOURCE", "-I", root, "-c", source, "-o", f"{folder}/out.o"], check=True)
            found |= symbols(f"{folder}/out.o", True) | symbols(f"{folder}/out.o", False)
    return {name for name in found if name.startswith("fault_")}


def check_fault_points_are_a_switch(root):
    """RM_FAULTS alone puts fault points into a program, and nobody sets it for a release: it holds whether one was built or not."""
    wrong = []
    for path in sources(root):
        text = (Path(root) / path).read_text()
        wrong += [f"{path}: {name} is a matter of common/os/fault alone" for name in ("RM_FAULTS", "fault_point", "fault_fails", "fault_flip")
                  if path not in FAULT_FILES and re.search(rf"\b{name}\b", text)]
    wrong += [f"{FAULT_FILES[0]}: {name} is there without RM_FAULTS" for name in sorted(fault_symbols(root))]
    presets = json.loads((Path(root) / "CMakePresets.json").read_text())["configurePresets"]
    if "RM_FAULTS" in preset_variables(presets, "release"):
        wrong.append("CMakePresets.json: release sets RM_FAULTS")
    if not re.search(r'option\(RM_FAULTS "[^"]*" OFF\)', (Path(root) / "cmake/RingmasterTargets.cmake").read_text()):
        wrong.append("cmake/RingmasterTargets.cmake: RM_FAULTS is not off by itself")
    return wrong


def function_spans(root, paths):
    """[(path, name, first line, last line)] of all C functions, by universal-ctags."""
    if not paths:
        return []
    text = subprocess.run(["ctags", "--output-format=json", "--languages=C", "--langmap=C:.c.h", "--kinds-C=f",
                           "--fields=+ne", "-f", "-", *paths], cwd=root, check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    tags = (json.loads(line) for line in text.splitlines())
    return [(t["path"], t["name"], t["line"], t["end"]) for t in tags if "end" in t]


def lengths_over(root, folders=SOURCE_FOLDERS + ("tests",)):
    """{'path' or 'path function': lines} of everything that is longer than it should be."""
    paths = sources(root, folders)
    over = {}
    for path in paths:
        lines = len((Path(root) / path).read_text().splitlines())
        if lines > FILE_LINES_MAX:
            over[path] = lines
    for path, name, first, last in function_spans(root, paths):
        lines = last - first + 1
        if lines > FUNCTION_LINES_MAX:
            over[f"{path} {name}"] = max(lines, over.get(f"{path} {name}", 0))
    return over


def read_known(path):
    """The ratchet file: 'lines path [function]' a line, '#' comments."""
    known = {}
    for line in Path(path).read_text().splitlines():
        words = line.split("#")[0].split()
        if words:
            known[" ".join(words[1:])] = int(words[0])
    return known


def check_lengths(root, known):
    """Long functions and files are the known ones, no longer than noted, and noted no longer than they are."""
    over = lengths_over(root)
    wrong = []
    for name, lines in sorted(over.items()):
        if name not in known:
            limit = FUNCTION_LINES_MAX if " " in name else FILE_LINES_MAX
            wrong.append(f"{name}: {lines} lines, {limit} at most")
        elif lines > known[name]:
            wrong.append(f"{name}: {lines} lines, grew from {known[name]}")
    for name, lines in sorted(known.items()):
        if over.get(name, 0) < lines:
            now = f"is {over[name]} now" if name in over else "is long no more"
            wrong.append(f"{name}: {now}; the ratchet file says {lines}, tighten it")
    return wrong


def asserting(root):
    """{folder: (functions that assert something, functions)} of each such folder. Who calls a check of a whole struct asserts."""
    counts = {}
    for folder in ASSERTING_FOLDERS:
        paths = [path for path in sources(root, suffixes=(".c",)) if path.rsplit("/", 1)[0] == folder]
        lines = {path: (Path(root) / path).read_text().splitlines() for path in paths}
        spans = function_spans(root, paths)
        asserts = [name for path, name, first, last in spans if ASSERTION.search("\n".join(lines[path][first - 1:last]))]
        if spans:
            counts[folder] = (len(asserts), len(spans))
    return counts


def check_assertions(root, floors):
    """In each such folder as large a share of the functions asserts something as is noted, in percent; and not far more is noted than that."""
    wrong = []
    for folder, (some, all_of_them) in sorted(asserting(root).items()):
        share = 100 * some // all_of_them
        floor = floors.get(folder, 0)
        if share < floor:
            wrong.append(f"{folder}: {some} of {all_of_them} functions assert something, {share} %; the ratchet file says {floor} %")
        if share >= floor + ASSERTING_SLACK:
            wrong.append(f"{folder}: {some} of {all_of_them} functions assert something, {share} %; the ratchet file says {floor} %, raise it")
    return wrong + [f"{folder}: the ratchet file has it, and nobody counts there" for folder in sorted(set(floors) - set(ASSERTING_FOLDERS))]


def names_hashed(root):
    """The files of the numerics ids, from the lists that make them, as patterns."""
    patterns = []
    for path, end in NAMES_HASHED:
        text = (Path(root) / path).read_text().partition(end)[0] if (Path(root) / path).exists() else ""
        patterns += re.findall(r"(?:\$\{CMAKE_SOURCE_DIR\}/)?([\w/]+(?:/\*\.\[ch\]|/\w+\*\.\[ch\]|/\*|\.c))(?=[\s)])", text)
    return patterns + [pattern.replace("_x86.c", "_portable.c") for pattern in patterns]


def check_names(root):
    """A function that is called like half of the tree's has a noun behind the verb: a backtrace names no file's."""
    wrong, hashed = [], names_hashed(root)
    for path, name, first, _ in function_spans(root, sources(root, suffixes=(".c",))):
        if name in BARE_VERBS and not any(fnmatch(path, pattern) for pattern in hashed):
            wrong.append(f"{path}:{first}: {name} says not what: a name of many needs its noun")
    return wrong


def check_comments(root):
    """A comment is a sentence: one that begins with a genitive or a preposition says of what, and then has a verb."""
    wrong = []
    for path in sources(root, suffixes=C_LIKE):
        text = (Path(root) / path).read_text()
        for match in re.finditer(r"^[ \t]*/\* ((\w+)\b.*?)\*/", text, re.S | re.M):
            first = re.split(r"[.:;](?=\s|$)", re.sub(r"\s*\n\s*\*?\s*", " ", match[1]))[0]
            if match[2] in HEADLESS and not VERBS & set(re.findall(r"[a-z']+", first)):
                wrong.append(f"{path}:{text.count(chr(10), 0, match.start()) + 1}: \"{first.strip()}\" has no subject")
    return wrong


def check_actions(root):
    """Actions and events are small headers: a message is tens of KiB, and lies behind a pointer (in a turn's arena, or with whoever sent it)."""
    wrong = []
    for path in sources(root, suffixes=(".h",)):
        text = without_comments((Path(root) / path).read_text())
        for match in re.finditer(r"struct (\w+_(?:action|event|out)) \{(.*?)\n\};", text, re.S):
            for member in re.finditer(r"\bstruct message\s+\w", match[2]):
                line = text.count("\n", 0, match.start(2) + member.start()) + 1
                wrong.append(f"{path}:{line}: {match[1]} carries a message by value: let it point to one")
    return wrong


def check_words(root):
    """A word of the glossary stands in names of C where it means that, and a word that was given up in none."""
    wrong = []
    for path in sources(root):
        text = without_comments((Path(root) / path).read_text())
        for match in re.finditer(r"[A-Za-z]\w*", text):
            for word in set(match[0].lower().split("_")) & WORDS.keys():
                if not re.match(WORDS[word], path):
                    line = text.count("\n", 0, match.start()) + 1
                    wrong.append(f"{path}:{line}: {match[0]}: \"{word}\" means something else (rules.py, docs/glossary.md)")
    return wrong


def check_openings(root):
    """A .c file of weight opens with what it is for: whoever comes to it from a backtrace has not read its header."""
    wrong = []
    for path in sources(root, suffixes=(".c",)):
        text = (Path(root) / path).read_text()
        lines = len(text.splitlines())
        least = OPENING_LINES_THERE if path.startswith(OPENS_SOONER) else OPENING_LINES
        if lines >= least and not text.startswith("/* "):
            wrong.append(f"{path}: has {lines} lines, and does not open with what it is for")
    return wrong


def compiles_alone(root, path):
    """None, or the first thing that the compiler has against a header by itself."""
    done = subprocess.run(["gcc", "-std=c17", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-Wno-psabi", "-fsyntax-only",
                           "-I.", "-x", "c", "-include", path, "/dev/null"], cwd=root, text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode and next((line for line in done.stdout.splitlines() if "error" in line), done.stdout)


def check_headers_alone(root):
    """Each header compiles by itself: it includes what it uses."""
    paths = sources(root, suffixes=(".h",))
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        found = zip(paths, pool.map(lambda path: compiles_alone(root, path), paths))
        return [f"{path}: does not compile alone: {why}" for path, why in found if why]


def check_format(root):
    """clang-format has nothing to say."""
    paths = sources(root, SOURCE_FOLDERS + ("tests",), C_LIKE)
    done = subprocess.run(["clang-format", "--dry-run", "-Werror", *paths], cwd=root, text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    wrong = {}
    for line in done.stdout.splitlines():
        if ": error:" in line:
            wrong.setdefault(line.split(":")[0], line)  # the first of each file
    return list(wrong.values()) or ([done.stdout] if done.returncode else [])
