"""Text of models and people: Markdown without danger, LaTeX kept, names hidden."""

import re
from html.parser import HTMLParser

import pytest

from bank.text.masking import HIDDEN, MARK, PLACEHOLDER, mask, names_of
from bank.text.rendering import LONGEST, formulas, markdown, raw

ALLOWED = set(
    "p br hr em strong s code pre blockquote ul ol li span div a h3 h4 h5 h6 table thead tbody tr th td".split()
)
HARMLESS = {"class", "title", "start", "data-display", "href", "rel", "target"}

PAYLOADS = [
    "<script>alert(1)</script>",
    "<SCRIPT SRC=//evil.example/x.js></SCRIPT>",
    "<script\x0ctype='text/javascript'>alert(1)</script>",
    "<scr<script>ipt>alert(1)</scr</script>ipt>",
    "<<script>alert(1)//<</script>",
    "<script>alert(1)",
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<img src=x onerror=alert(1)//",
    "<img/src/onerror=alert(1)>",
    "<img src='x' onerror='alert(1)'>",
    "<img src=`x` onerror=alert(1)>",
    '<img """><script>alert("x")</script>">',
    "<IMG SRC=javascript:alert('x')>",
    "<IMG SRC=&#106;&#97;&#118;&#97;script:alert(1)>",
    "<IMG SRC=&#x6A&#x61&#x76&#x61script:alert(1)>",
    "<img src='https://evil.example/pixel.gif'>",
    "<picture><source srcset=x onerror=alert(1)></picture>",
    "<svg onload=alert(1)>",
    "<svg><script>alert(1)</script></svg>",
    "<svg/onload=alert(1)//",
    "<svg><animate onbegin=alert(1) attributeName=x dur=1s>",
    "<svg><a xlink:href='javascript:alert(1)'><text y=20>x</text></a></svg>",
    "<svg><use href='data:image/svg+xml,<svg id=x onload=alert(1)>#x'/></svg>",
    "<svg><foreignObject><iframe src=javascript:alert(1)></foreignObject></svg>",
    "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)></style></mglyph></table></mtext></math>",
    "<math href='javascript:alert(1)'>x</math>",
    "<iframe src=javascript:alert(1)></iframe>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "<object data=javascript:alert(1)></object>",
    "<embed src=javascript:alert(1)>",
    "<applet code=x></applet>",
    "<body onload=alert(1)>",
    "<body background=javascript:alert(1)>",
    "<link rel=stylesheet href=javascript:alert(1)>",
    "<link rel=preload href=//evil.example>",
    "<meta http-equiv=refresh content='0;url=javascript:alert(1)'>",
    "<base href=javascript:alert(1)//>",
    "<style>@import 'javascript:alert(1)';</style>",
    "<style>body{background:url(javascript:alert(1))}</style>",
    "<div style='background:url(javascript:alert(1))'>x</div>",
    "<div style='width:expression(alert(1))'>x</div>",
    "<p style='position:fixed;inset:0'>x</p>",
    "<input autofocus onfocus=alert(1)>",
    "<select autofocus onfocus=alert(1)>",
    "<textarea autofocus onfocus=alert(1)>",
    "<keygen autofocus onfocus=alert(1)>",
    "<button formaction=javascript:alert(1)>x</button>",
    "<form action=javascript:alert(1)><input type=submit></form>",
    "<isindex action=javascript:alert(1) type=image>",
    "<video src=x onerror=alert(1)></video>",
    "<video><source onerror=alert(1)></video>",
    "<audio src=x onerror=alert(1)>",
    "<details open ontoggle=alert(1)>",
    "<marquee onstart=alert(1)>x</marquee>",
    "<a href='javascript:alert(1)'>x</a>",
    "<a href=' javascript:alert(1)'>x</a>",
    "<a href='java\nscript:alert(1)'>x</a>",
    "<a href='vbscript:msgbox(1)'>x</a>",
    "<a onmouseover=alert(1)>x</a>",
    "<xss onclick=alert(1) tabindex=1>x</xss>",
    "<template><script>alert(1)</script></template>",
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'></noscript>",
    "<title><img src=x onerror=alert(1)></title>",
    "<table background=javascript:alert(1)>",
    "<td background=javascript:alert(1)>",
    "<!--><script>alert(1)</script>-->",
    "<!-- --!><img src=x onerror=alert(1)> -->",
    "<![CDATA[<script>alert(1)</script>]]>",
    "<?xml version='1.0'?><script>alert(1)</script>",
    "%3Cscript%3Ealert(1)%3C/script%3E",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "&#60;script&#62;alert(1)&#60;/script&#62;",
    "+ADw-script+AD4-alert(1)+ADw-/script+AD4-",
    "\u00bcscript\u00bealert(1)\u00bc/script\u00be",
    "<scrıpt>alert(1)</scrıpt>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](  javascript:alert(1))",
    "[x](java&#115;cript:alert(1))",
    "[x](javascript&colon;alert(1))",
    "[x](\x01javascript:alert(1))",
    "[x](data:text/html,<script>alert(1)</script>)",
    "[x](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)",
    "[x](vbscript:msgbox(1))",
    "[x](file:///etc/passwd)",
    "[x](//evil.example)",
    '[x](https://evil.example "onmouseover=alert(1)")',
    '[x](https://evil.example/"onmouseover="alert(1))',
    "[x](<https://evil.example/><img src=x onerror=alert(1)>)",
    "[<img src=x onerror=alert(1)>](https://evil.example)",
    "![x](https://evil.example/pixel.gif)",
    '![x" onerror="alert(1)](x)',
    "![<script>alert(1)</script>](x)",
    "<javascript:alert(1)>",
    "<https://evil.example/?<script>>",
    "[x]: javascript:alert(1)\n\n[x]",
    "```html\n<script>alert(1)</script>\n```",
    '```"><script>alert(1)</script>\nx\n```',
    "`<img src=x onerror=alert(1)>`",
    "$<img src=x onerror=alert(1)>$",
    "$$\n<script>alert(1)</script>\n$$",
    "\\(\\href{javascript:alert(1)}{x}\\)",
    "\\[\\htmlData{x=<script>alert(1)</script>}{y}\\]",
    "| <script>alert(1)</script> |\n|:-:|\n| <img src=x onerror=alert(1)> |",
    "# <svg onload=alert(1)>",
    "> <iframe src=javascript:alert(1)>",
    "1. <object data=javascript:alert(1)>",
    "**<b onclick=alert(1)>**",
    f"{MARK}<img src={MARK} onerror=alert(1)>",
    f'[x](https://evil.example/{MARK}" onmouseover=alert(1))',
]


class Tags(HTMLParser):
    """What a browser would make of it."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.found = []
        self.words = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.words += data


def test_there_are_a_hundred_payloads():
    assert len(set(PAYLOADS)) >= 100


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("links", [False, True])
@pytest.mark.check("D4")
def test_nothing_executable_survives(links, masked):
    for payload in PAYLOADS:
        for text in (payload, f"Text before.\n\n{payload}\n\n- in a list: {payload}"):
            html = markdown(text, links=links, masked=masked)
            for tag, attributes in Tags(html).found:
                assert tag in ALLOWED, text
                assert set(attributes) <= HARMLESS, text
                if tag == "a":
                    assert links, text
                    assert re.match(r"https?://", attributes["href"]), text
                    assert {"noopener", "nofollow"} <= set(attributes["rel"].split()), text
            assert [tag for tag, _ in Tags(raw(text)).found] == [], text


class TestMarkdown:
    def test_headings_stand_below_those_of_the_page(self):
        assert markdown("# One\n## Two\n###### Six") == "<h3>One</h3>\n<h4>Two</h4>\n<h5>Six</h5>\n"
        assert markdown("### One\n## Two") == "<h4>One</h4>\n<h3>Two</h3>\n"
        assert "<th" not in markdown("| |\n|-|\n|a|").replace("<thead", "")

    def test_tables_align_by_class_not_by_style(self):
        html = markdown("| a | b | c |\n|---|:-:|--:|\n| 1 | 2 | 3 |")
        assert '<td>1</td>\n<td class="c">2</td>\n<td class="n">3</td>' in html
        assert "style" not in html

    def test_html_is_shown_as_text(self):
        assert "&lt;b&gt;bold&lt;/b&gt;" in markdown("<b>bold</b>")

    def test_line_breaks_stay_and_nothing_vanishes(self):
        assert "one<br>" in markdown("one\ntwo")
        assert "[1]: https://example.org" in Tags(markdown("see [1]\n\n[1]: https://example.org")).words
        assert Tags(markdown("    indented, not code")).found == [("p", {})]

    def test_links_in_answers_are_inert_and_show_where_they_lead(self):
        assert markdown("[x](https://a.example/b)") == '<p><span class="url" title="https://a.example/b">x</span></p>\n'

    def test_pictures_become_their_words(self):
        assert "[picture: a cat]" in markdown("![a cat](https://a.example/cat.png)")
        assert "cat.png" not in markdown("![a cat](https://a.example/cat.png)")

    def test_an_answer_of_table_code_formulas_html_and_a_picture_is_drawn_and_asks_nobody_for_anything(self):
        html = markdown(
            "# Head\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```python\nprint(1)\n```\n\nInline $x^2$ and \\(a+b\\). "
            "![leak](http://127.0.0.1:9/leak.png?q=secret) <img src=x onerror=alert(1)>"
        )
        drawn = [tag for tag, _ in Tags(html).found]
        assert {"table", "pre"} <= set(drawn)
        assert re.findall(r'<span class="tex">(.*?)</span>', html) == ["x^2", "a+b"]
        assert "img" not in drawn
        assert "[picture: leak]" in html
        assert "leak.png" not in html
        assert "&lt;img src=x onerror=alert(1)&gt;" in html

    def test_a_very_long_text_is_shown_as_it_is(self):
        html = markdown("**b** <i>" * LONGEST)
        assert html.startswith('<pre class="plain">**b** &lt;i&gt;')

    @pytest.mark.parametrize(
        "text",
        [
            "[" * LONGEST,
            "![" * 20_000,
            "*a " * 13_000,
            "- $$x\n" * 6_000,
            "$$x\n\n" * 8_000,
            "\\(" * 20_000,
            "> " * 20_000,
        ],
    )
    def test_hostile_nesting_is_rendered_all_the_same(self, text):
        assert markdown(text)


class TestLatex:
    @pytest.mark.parametrize(
        ("text", "formulas"),
        [
            ("the area $a^2$ is", ["a^2"]),
            ("the area \\(a^2\\) is", ["a^2"]),
            ("it costs $5 and then $10.", []),
            ("5$ or 6$", []),
            ("from $5–$10, with $x$ items", ["x"]),
            ("$ not a formula $", []),
            ("\\$5 and \\$6", []),
            ("`$x$`", []),
            ("$x < y$", ["x < y"]),
            ("$\\text{cost} = \\$5$", ["\\text{cost} = \\$5"]),
            ("unclosed $x", []),
            ("unclosed \\(x", []),
        ],
    )
    def test_inline(self, text, formulas):
        html = markdown(text)
        found = re.findall(r'<span class="tex">(.*?)</span>', html)
        assert [formula.replace("&lt;", "<") for formula in found] == formulas

    @pytest.mark.parametrize(
        "text",
        ["$$\n\\frac{1}{2}\n$$", "\\[\n\\frac{1}{2}\n\\]", "$$\\frac{1}{2}$$", "\\[ \\frac{1}{2} \\]"],
    )
    def test_on_lines_of_its_own(self, text):
        assert '<div class="tex" data-display="">\\frac{1}{2}</div>' in markdown(f"Before\n{text}\nafter")
        assert '<div class="tex" data-display="">\\frac{1}{2}</div>' in markdown(
            f"- item\n\n  {text}".replace("\n", "\n  ")
        )

    def test_displayed_within_a_paragraph(self):
        assert '<span class="tex" data-display="">x</span>' in markdown("so $$x$$ follows")

    def test_the_source_is_escaped(self):
        assert "&lt;/div&gt;&lt;script&gt;" in markdown("$$\n</div><script>\n$$")


MODELS = (
    ("gpt-4-1106-vision-preview", "", ""),
    ("LLaVA-v1.5-13B", "", ""),
    ("claude-3-opus-20240229", "", ""),
    ("gemini-pro-vision", "Gemini", "Google"),
    ("Wren 3B", "Wren", "Tern Works"),
    ("Kestrel-VL 7B", "Kestrel", "Kestrel Lab"),
    ("InstructBLIP", "", ""),
    ("Orrery 1.5 Pro", "Orrery", "Meridian AI"),
)


class TestNames:
    @pytest.mark.parametrize(
        ("text", "left"),
        [
            ("As GPT-4, I can", "As _, I can"),
            ("I am gpt-4v(ision).", "I am _."),
            ("GPT4, GPT 4 Turbo and gpt-4-1106-vision-preview", "_, _ and _"),
            ("ChatGPT-4o says hello", "_ says hello"),
            ("a llava model: LLaVA 1.5, llava-v1.6-34b.", "a _ model: _, _."),
            ("**LLaVA**-like", "**_**-like"),
            ("I'm Claude, made by Anthropic.", "I'm _, made by _."),
            ("claude-3-opus or Claude Opus", "_ or _"),
            ("I am Gemini, trained by Google.", "I am _, trained by _."),
            ("Gemini Pro 1.5 and gemini-pro", "_ and _"),
            ("As Wren, I think", "As _, I think"),
            ("You may call me Wren.", "You may call me _."),
            ("My name is Wren.", "My name is _."),
            ("Wren-3B, wren3b, WREN 3B", "_, _, _"),
            ("Kestrel-VL here", "_ here"),
            ("I am an AI assistant called Orrery.", "I am an AI assistant called _."),
            ("a model developed by Meridian AI", "a model developed by _"),
            ("an InstructBLIP answer", "an _ answer"),
            ("I was developed by OpenAI", "I was developed by _"),
        ],
    )
    def test_names_are_hidden(self, text, left):
        assert mask(text, names_of(MODELS)).replace(PLACEHOLDER, "_") == left

    @pytest.mark.parametrize(
        "text",
        [
            "A wren sits beside a kestrel.",
            "The Wren and the Kestrel are birds.",
            "I saw wren 3 times.",
            "Claude Monet painted it; Jean-Claude did not.",
            "Gemini is a sign of the zodiac.",
            "The phone was made by Google in 2020.",
            "An orrery shows the planets; it was built by hand.",
            "The Google logo, the GP, the G7 and a gemini.",
            "instructions for blip and llavado",
        ],
    )
    def test_ordinary_words_stay(self, text):
        assert mask(text, names_of(MODELS)) == text

    def test_names_as_plain_texts_will_do(self):
        assert mask("I am gpt-4.", ["gpt-4-vision"]) == f"I am {PLACEHOLDER}."

    def test_hidden_names_become_a_chip_that_survives_markdown(self):
        html = markdown(
            mask("**GPT-4** in `gpt-4` and [GPT-4](https://gpt-4.example)", names_of(MODELS), placeholder=MARK),
            masked=True,
        )
        assert html.count(f'<span class="mask">{HIDDEN}</span>') == 3
        assert MARK not in html
        assert "gpt" not in html.lower()

    def test_the_mark_itself_cannot_be_smuggled_in(self):
        assert HIDDEN not in markdown(f"a{MARK}b")
        assert HIDDEN not in raw(f"a{MARK}b")
        assert mask(f"a{MARK}b", names_of(MODELS), placeholder=MARK) == "ab"


def test_formulas_of_an_option_are_drawn_and_all_else_stays_as_it_is():
    assert formulas(r"$\frac{1}{2}$ of *it* <b>, 3 $ and 4 $") == (
        r'<span class="tex">\frac{1}{2}</span> of *it* &lt;b&gt;, 3 $ and 4 $'
    )
    assert formulas('1. "A" & \\(x<1\\)') == '1. "A" &amp; <span class="tex">x&lt;1</span>'
