# SPDX-License-Identifier: BSD-3-Clause
"""Makes the site of scripts/docs: docs_site.py SOURCE_ROOT FOLDER.

Doxygen reads the headers and lays out the site. Its Markdown differs from that of repository viewers, so markdown-it
renders the pages. Doxygen gets their headings, for navigation and search, with finished HTML between them.
"""
import html
import os
import posixpath
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from urllib.parse import unquote

from markdown_it import MarkdownIt

THEME = Path("/usr/share/doxygen-awesome-css/doxygen-awesome.css")
SITE = Path(__file__).resolve().parent.parent / "docs/site"
WEB = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)


def slug(heading, seen):
    """The anchor that repository viewers give a heading: small letters, hyphens, a number where it repeats."""
    name = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
    seen[name] = seen.get(name, -1) + 1
    return f"{name}-{seen[name]}" if seen[name] else name


def page_name(path):
    """docs/decisions/0001-x.md → page-decisions-0001-x, a name that Doxygen never makes itself; README.md → index."""
    path = path.removeprefix("docs/").removesuffix(".md")
    return "index" if path == "README" else "page-" + path.removesuffix("/README").replace("/", "-").lower()


class Pages:
    """The Markdown files of the repository that become pages, and the other files that they show or name."""

    def __init__(self, root):
        self.root = root
        found = [Path("README.md"), Path("CHANGELOG.md"), Path("SECURITY.md"), *sorted((root / "docs").rglob("*.md"))]
        self.paths = [posixpath.normpath(os.path.relpath(root / path, root)) for path in found if (root / path).exists()]
        self.files = set()
        self.markdown = MarkdownIt("commonmark").enable("table")

    def target(self, link, page):
        """The address on the site for a link of a page."""
        if WEB.match(link):
            return link
        path, _, anchor = link.partition("#")
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page), unquote(path))) if path else page
        if (self.root / path).is_dir() and path + "/README.md" in self.paths:
            path += "/README.md"
        if path in self.paths:
            name = page_name(path)
            return f"{name}.html" + (f"#{name}--{anchor}" if anchor else "")
        self.files.add(path)
        return f"files/{path}"

    def render(self, page):
        """The text of a page for Doxygen: headings in Doxygen's form, with HTML between them."""
        name, tokens = page_name(page), self.markdown.parse((self.root / page).read_text(encoding="utf-8"))
        for token in tokens:
            for child in token.children or []:
                for attribute in ("href", "src"):
                    if attribute in child.attrs:
                        child.attrs[attribute] = self.target(child.attrs[attribute], page)
        parts, between, seen, position = [], [], {}, 0
        while position < len(tokens):
            token = tokens[position]
            if token.type == "heading_open" and token.level == 0:
                parts += self.finished(between)
                between, title = [], text_of(tokens[position + 1])
                anchor = f"{name}--{slug(title, seen)}"
                if token.tag == "h1":
                    parts.append(f"# {plain(title)} {{#{'mainpage' if name == 'index' else name}}}\n")
                    parts += self.finished([], f'<a id="{anchor}"></a>')
                else:
                    parts.append(f"{'#' * int(token.tag[1])} {plain(title)} {{#{anchor}}}\n")
                position += 3
            else:
                between.append(token)
                position += 1
        return "\n".join(parts + self.finished(between) + self.children(page))

    def finished(self, tokens, text=""):
        text += self.markdown.renderer.render(tokens, self.markdown.options, {}) if tokens else ""
        text = re.sub(r"<pre><code[^>]*>(.*?)</code></pre>", r'<pre class="fragment">\1</pre>', text, flags=re.DOTALL)
        text = text.replace("<table>", '<div class="wide"><table class="doxtable">').replace("</table>", "</table></div>")
        return [f"\\htmlonly\n{text}\n\\endhtmlonly\n"] if text else []

    def children(self, page):
        """Invisible references to the pages below this one. Doxygen makes the site's tree from them."""
        below = {"README.md": lambda path: path != page and "/decisions/0" not in path,
                 "docs/decisions/README.md": lambda path: "/decisions/0" in path}.get(page, lambda path: False)
        linked = [path for path in self.in_order(page) if below(path)]
        names = [page_name(path) for path in linked + [path for path in self.paths if below(path) and path not in linked]]
        hidden = [r"\htmlonly <div hidden> \endhtmlonly", *(rf"- \subpage {name}" for name in names), r"\htmlonly </div> \endhtmlonly"]
        return hidden if names else []

    def in_order(self, page):
        """The pages that this one links to, in the order of its links."""
        links = re.findall(r"\]\(([^)#\s]+\.md)\)", (self.root / page).read_text(encoding="utf-8"))
        paths = [posixpath.normpath(posixpath.join(posixpath.dirname(page), link)) for link in links]
        return [path for path in dict.fromkeys(paths) if path in self.paths]


def text_of(inline):
    return "".join(child.content for child in inline.children)


def plain(title):
    """A title with Doxygen's special characters escaped."""
    return re.sub(r"([\\@&$#<>%\"*_`])", r"\\\1", title)


def grouped(header):
    """The header, with the comment of a function repeated for those that follow it without a blank line."""
    result, comment, depth, statement = [], [], 0, ""
    lines = header.splitlines()
    for number, line in enumerate(lines):
        words = line.strip()
        if words.startswith("///") and not words.startswith("///<"):
            if not (number and lines[number - 1].strip().startswith("///")):
                comment = []
            comment.append(line)
        elif not words or words.startswith(("//", "#", "}", "public:", "private:", "protected:")):
            comment, statement = ([] if not words.startswith("//") else comment), ""
        else:
            code = words.split("//")[0]
            if not statement and comment and not lines[number - 1].strip().startswith("///") and "(" in code + lines[min(number + 1, len(lines) - 1)]:
                result += comment
            statement += code
            depth = statement.count("(") + statement.count("{") - statement.count(")") - statement.count("}")
            if depth == 0 and code.rstrip().endswith((";", "}")):
                statement = ""
            elif depth > 0 and code.rstrip().endswith("{") and re.search(r"\b(class|struct|enum|namespace)\b", statement):
                comment, statement = [], ""
        result.append(line)
    return "\n".join(result) + "\n"


def run_doxygen(root, pages, stage, folder):
    """Runs Doxygen, and returns its warnings, with the paths of the sources."""
    for page in pages.paths:
        (stage / f"{page_name(page)}.md").write_text(pages.render(page), encoding="utf-8")
    for header in sorted((root / "include").rglob("*.hpp")):
        to = stage / header.relative_to(root)
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_text(grouped(header.read_text(encoding="utf-8")), encoding="utf-8")
    version = re.search(r"version: '([^']+)'", (root / "meson.build").read_text(encoding="utf-8"))[1]
    sheets = [THEME, THEME.with_name("doxygen-awesome-sidebar-only.css"), SITE / "style.css"]
    settings = (SITE / "Doxyfile").read_text(encoding="utf-8") + f"""
PROJECT_NUMBER = {version}
INPUT = {' '.join(f'"{stage / page_name(page)}.md"' for page in pages.paths)} "{stage}/include"
STRIP_FROM_PATH = "{stage}/include"
STRIP_FROM_INC_PATH = "{stage}/include"
OUTPUT_DIRECTORY = "{folder}"
HTML_OUTPUT = .
HTML_EXTRA_STYLESHEET = {' '.join(f'"{sheet}"' for sheet in sheets)}
GENERATE_TAGFILE = "{stage}/tags.xml"
"""
    done = subprocess.run(["doxygen", "-"], input=settings, text=True, capture_output=True, check=False)
    if done.returncode != 0:
        sys.exit(f"docs: doxygen ended with status {done.returncode}: {done.stderr}")
    return [line.replace(f"{stage}/", "") for line in done.stderr.splitlines() if line.strip()]


def link_names(folder, tags):
    """Links names of types and functions in the pages to the interface."""
    address = {}
    for compound in ElementTree.parse(tags).iter("compound"):
        if compound.get("kind") in ("class", "struct"):
            address[compound.findtext("name").split("::")[-1]] = compound.findtext("filename")
        if compound.get("kind") == "namespace":
            for member in compound.iter("member"):
                name = member.findtext("name") + ("()" if member.get("kind") == "function" else "")
                address.setdefault(name, f"{member.findtext('anchorfile')}#{member.findtext('anchor')}")

    def linked(match):
        where = address.get(html.unescape(match[1]))
        where = where if where is None or ".html" in where else where + ".html"
        return f'<a class="el" href="{where}">{match[0]}</a>' if where else match[0]

    for path in folder.glob("*.html"):
        text = path.read_text(encoding="utf-8")
        new = re.sub(r"(?<!\">)<code>([A-Za-z_]+(?:\(\))?)</code>(?!</a>)", linked, text)
        if new != text:
            path.write_text(new, encoding="utf-8")


def rename_tab(folder):
    """Renames Doxygen's tab Concepts, because a page has the same name."""
    tree = folder / "navtreedata.js"
    text = tree.read_text(encoding="utf-8")
    tree.write_text(text.replace('[ "Concepts", "concepts.html"', '[ "Concepts of C++", "concepts.html"'), encoding="utf-8")


def broken_links(folder):
    """Every link and picture of the site that leads nowhere."""
    texts = {path.name: path.read_text(encoding="utf-8", errors="replace") for path in folder.glob("*.html")}
    anchors = {name: set(re.findall(r'\b(?:id|name)="([^"]+)"', text)) for name, text in texts.items()}
    for name, text in sorted(texts.items()):
        for link in sorted(set(re.findall(r'\b(?:href|src)="([^"]+)"', text))):
            link = html.unescape(link)
            path, _, anchor = link.partition("#")
            path = unquote(path) or name
            if WEB.match(link) or anchor == "nested-classes":  # Doxygen's own link to private members
                continue
            if not (folder / path).exists():
                yield f"{name}: {link} leads nowhere"
            elif anchor and path in anchors and anchor not in anchors[path]:
                yield f"{name}: {link} leads nowhere in {path}"


def build(root, folder):
    """Makes the site, and returns its errors, one line each."""
    pages = Pages(root)
    with tempfile.TemporaryDirectory() as scratch:
        complaints = run_doxygen(root, pages, Path(scratch), folder)
        link_names(folder, Path(scratch) / "tags.xml")
    rename_tab(folder)
    for name in sorted(pages.files):
        source, to = root / name, folder / "files" / name
        to.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            to.mkdir(exist_ok=True)
        elif source.exists():
            shutil.copyfile(source, to)
    return [*complaints, *broken_links(folder)]


def main(root, folder):
    if not shutil.which("doxygen") or not THEME.exists():
        sys.exit("docs: needs doxygen and doxygen-awesome-css; on Debian, scripts/setup docs")
    folder.mkdir(parents=True, exist_ok=True)
    complaints = build(root, folder)
    print(*complaints, f"{folder / 'index.html'}: {len(complaints)} warnings", sep="\n")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()))
