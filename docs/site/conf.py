# SPDX-License-Identifier: BSD-3-Clause
"""What scripts/docs gives Sphinx. The sources of the site are the repository's own files, from its root."""
import os
import re
import sys
import types
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from docutils import nodes
from sphinx import addnodes

ROOT = Path(__file__).resolve().parents[2]
TAGS = Path(os.environ["GRIDLOPS_TAGS"])  # the names that Doxygen found, with their pages

project = "GridLOps"
version = release = os.environ["GRIDLOPS_VERSION"]
html_title = f"GridLOps {version}"
language = "en"

extensions = ["myst_parser", "sphinx.ext.autodoc"]
root_doc = "README"
source_suffix = {".md": "markdown", ".py": "markdown", ".rst": "restructuredtext"}
include_patterns = ["*.md", "docs/**.md", "docs/notebooks/*.py", "docs/site/*.rst"]
exclude_patterns = ["docs/site/tree.md", *(entry.name for entry in ROOT.iterdir() if entry.is_dir() and entry.name != "docs")]
myst_heading_anchors = 6
highlight_language = "none"

html_theme = "furo"
html_static_path = ["style.css"]
html_css_files = ["style.css"]
templates_path = ["templates"]
html_sidebars = {"**": ["sidebar/brand.html", "version.html", "sidebar/search.html", "sidebar/scroll-start.html",
                        "sidebar/navigation.html", "sidebar/scroll-end.html"]}
html_show_copyright = html_show_sphinx = html_copy_source = False

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
add_module_names = toc_object_entries = False


def module(name, **members):
    sys.modules[name] = types.ModuleType(name)
    vars(sys.modules[name]).update(members)
    return sys.modules[name]


def import_package():
    """Imports the Python package without mpi4py, PyLops-MPI and the C++ module: of these, only what the import looks at is here."""
    mpi = module("mpi4py.MPI", Comm=type("Comm", (), {"__module__": "mpi4py.MPI"}), Get_library_version=str, COMM_WORLD=None, Is_initialized=bool)
    module("mpi4py", MPI=mpi)
    module("pylops_mpi", **{name: type(name, (), {"__module__": "pylops_mpi"})
                            for name in ("DistributedArray", "MPILinearOperator", "Partition", "StackedDistributedArray")})
    native = module("gridlops._native", version=version, error_statuses={}, mpi_library=str)
    package = ROOT / "apps/python/gridlops"
    stub = "from __future__ import annotations\n" + (package / "_native.pyi").read_text(encoding="utf-8")
    exec(stub, vars(native))  # pylint: disable=exec-used
    sys.path.insert(0, str(package.parent))
    import gridlops  # pylint: disable=import-outside-toplevel
    return gridlops


def skip(_app, what, name, member, skipped, _options):
    """Leaves out what is public for the package's own files only."""
    where = getattr(member, "__module__", "") or ""
    own = what == "module" and where.startswith("gridlops.") and hasattr(sys.modules["gridlops"], where.split(".")[1])
    own = own and where not in ("gridlops.io", "gridlops.plot", "gridlops.pylops_mpi") and name not in sys.modules["gridlops"].__all__
    return True if own or "for this package's own files" in (member.__doc__ or "") else skipped


def cxx_names():
    """For each header the (name, page) of what it declares, as Doxygen's tag file has it; overloads once."""
    seen = set()
    compounds = [(each, each.get("kind"), each.findtext("name")) for each in ElementTree.parse(TAGS).iter("compound")]
    classes = {name: each for each, kind, name in compounds if kind in ("class", "struct")}

    def members(compound, prefix=""):
        for member in compound.iter("member"):
            if prefix == "" or member.get("kind") == "function" and "operator" not in member.findtext("name"):
                yield prefix + member.findtext("name"), f"{member.findtext('anchorfile')}#{member.findtext('anchor')}"

    for compound, kind, name in compounds:
        if kind == "file":
            found = {}
            for key in sorted(each.text for each in compound.iter("class")):
                short = key.removeprefix("gridlops::")
                found[short] = classes[key].findtext("filename")
                found.update(dict(members(classes[key], short + "::")))
            found.update(dict(members(compound)))
            yield f"{compound.findtext('path').partition('include/')[2]}{name}", compound.findtext("filename"), {key: found[key] for key in found if key not in seen}
            seen |= found.keys()


def cxx_entry(env, text, signature):
    """A line ".. cxx:: name page": the name, which the search finds, linked to Doxygen's page."""
    name, page = text.split()
    link = nodes.reference("", "", addnodes.desc_name(name, name), refuri="../" * env.docname.count("/") + f"cpp/{page}", internal=False)
    signature += link
    return name


def slug(heading):
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def gallery():
    """Every picture of the pages once, under the heading that it belongs to."""
    seen = set()
    for page in sorted((ROOT / "docs").glob("*.md")):
        title, heading = "", ""
        for line in page.read_text(encoding="utf-8").splitlines():
            if found := re.match(r"(#+) (.*)", line):
                title, heading = (found[2], "") if found[1] == "#" else (title, found[2])
            elif (found := re.match(r"!\[(.*)\]\((.*)\)$", line)) and found[2] not in seen:
                seen.add(found[2])
                yield f"## {heading or title}\n\n![{found[1]}](../{found[2]})\n\nFrom [{title}](../{page.name}#{slug(heading or title)}): {found[1]}.\n"


def read_source(_app, name, source):
    """What the site adds to files that are written for readers of the repository, and the pages that it makes of others."""
    if name == root_doc:
        source[0] += (ROOT / "docs/site/tree.md").read_text(encoding="utf-8")
    elif name == "docs/decisions/README":
        source[0] += "\n```{toctree}\n:hidden:\n:glob:\n\n0*\n```\n"
    elif name == "docs/site/gallery":
        source[0] += "\n".join(gallery())
    elif name == "docs/site/cpp-api":
        for header, page, found in cxx_names():
            source[0] += f"\n{header}\n{'-' * len(header)}\n\n`With comments <../../cpp/{page}>`__\n\n"
            source[0] += "".join(f".. cxx:: {key} {where}\n" for key, where in found.items())
    elif name.startswith("docs/notebooks/"):
        program = f"docs/notebooks/{name.rpartition('/')[2]}.py"
        cells = re.findall(r"^# %%( \[markdown\])?\n(.*?)(?=^# %%|\Z)", source[0], re.MULTILINE | re.DOTALL)
        source[0] = "\n".join(re.sub("^# ?", "", text, flags=re.MULTILINE) if kind else f"```python\n{text.strip()}\n```\n" for kind, text in cells)


def to_repository(_app, _env, node, content):
    """Links to folders of the repository, which the site does not have, become their text."""
    target = ROOT / Path(node["refdoc"]).parent / node["reftarget"]
    return content if target.is_dir() else None


def resolve(app, doctree, page):
    """Shows files of the repository instead of saving them, and links names of the interfaces."""
    up = "../" * page.count("/")
    headers, cxx = {}, {}
    for header, where, found in app.cxx:
        headers[header] = where
        for key, address in found.items():
            cxx.setdefault(key, f"{up}cpp/{address}")
    for node in list(doctree.findall(addnodes.download_reference)):
        header = node["reftarget"].partition("include/")[2]
        address = f"cpp/{headers[header]}" if header in headers else f"_downloads/{node['filename']}"
        node.replace_self(nodes.reference("", "", *node.children, refuri=up + address, internal=True))
    python = {key.rpartition(".")[2]: app.builder.get_relative_uri(page, value.docname) + "#" + value.node_id
              for key, value in sorted(app.env.get_domain("py").objects.items(), reverse=True) if value.objtype in ("class", "function")}
    for node in list(doctree.findall(nodes.literal)):
        name = node.astext().removeprefix("gl.").removesuffix("()")
        names = python if "py" in page or "notebooks" in page else cxx
        if name in names and not isinstance(node.parent, (nodes.reference, nodes.title)) and (names is python or name[0].isupper() or node.astext() != name):
            node.replace_self(nodes.reference("", "", node.deepcopy(), refuri=names[name], internal=True))


def setup(app):
    app.cxx = list(cxx_names())
    import_package()
    app.add_object_type("cxx", "cxx", objname="C++", parse_node=cxx_entry)
    app.connect("autodoc-skip-member", skip)
    app.connect("source-read", read_source)
    app.connect("missing-reference", to_repository)
    app.connect("doctree-resolved", resolve)
