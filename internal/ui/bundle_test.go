// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

func files(texts map[string]string) fs.FS {
	f := fstest.MapFS{}
	for name, text := range texts {
		f[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return f
}

func TestScript(t *testing.T) {
	got, err := script(files(map[string]string{
		"lib.js": "var lib = 1;",
		"a.js":   "export const one = 1;\nconst own = 2;\nexport function two() { return own; }\n",
		"b.js":   "import {one, two as deux} from './a.js';\nconst own = 3;\nexport class Three { n() { return one + deux() + own; } }\nexport async function four() {}\n",
	}), "import {Three} from './b.js';\nimport {one} from './a.js';\nresult(new Three().n() + one + lib);\n", []string{"lib.js"})
	const want = `var lib = 1;
(() => {
'use strict';
const $a = (() => {
const one = 1;
const own = 2;
function two() { return own; }
return {one, two};
})();
const $b = (() => {
const {one, two: deux} = $a;
const own = 3;
class Three { n() { return one + deux() + own; } }
async function four() {}
return {Three, four};
})();
const {Three} = $b;
const {one} = $a;
result(new Three().n() + one + lib);
})();
`
	if got != want || err != nil {
		t.Errorf("got %v\n%s\nwant\n%s", err, got, want)
	}
}

// Unsupported statements are errors with their place.
func TestScript_Mistakes(t *testing.T) {
	for name, tt := range map[string]struct {
		main  string
		files map[string]string
		want  string
	}{
		"no such file":        {"import {a} from './a.js';", nil, "a.js"},
		"several lines":       {"import {\n\ta,\n} from './a.js';", nil, "own:1: import {"},
		"all of it":           {"import * as a from './a.js';", nil, "own:1: import *"},
		"default":             {"import {a} from './a.js';", map[string]string{"a.js": "\nexport default 1;"}, "a.js:2: export default"},
		"of a variable":       {"export let a = 1;", nil, "own:1: export let"},
		"in a circle":         {"import {a} from './a.js';", map[string]string{"a.js": "import {b} from './b.js';", "b.js": "import {a} from './a.js';"}, "a.js imports itself"},
		"the end of a script": {"const a = '</Script>';", nil, "</script"},
		"a comment of HTML":   {"const a = '<!--';", nil, "<!--"},
	} {
		if got, err := script(files(tt.files), tt.main, nil); err == nil || !strings.Contains(err.Error(), tt.want) || got != "" {
			t.Errorf("%s: got %q, %v; want an error with %q", name, got, err, tt.want)
		}
	}
	if _, err := Script("", "none.js"); err == nil {
		t.Error("a plain script that is not there: got no error")
	}
}

// All shared modules can be joined. Tests in a browser run the result.
func TestScript_Shared(t *testing.T) {
	names, err := fs.Glob(Files(), "*.js")
	if err != nil || len(names) == 0 {
		t.Fatalf("got %q, %v", names, err)
	}
	var main strings.Builder
	for _, name := range names {
		text, err := fs.ReadFile(Files(), name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if m := exportLine.FindStringSubmatch(line); m != nil {
				main.WriteString("import {" + m[2] + "} from './" + name + "';\n")
			}
		}
	}
	got, err := Script(main.String(), "uplot/uPlot.iife.min.js")
	if err != nil {
		t.Fatal(err)
	}
	for _, never := range []string{"\nimport ", "\nexport ", "https://unpkg", "fetch(", "XMLHttpRequest", ".innerHTML ="} {
		if strings.Contains(got, never) {
			t.Errorf("the script has %q in it", never)
		}
	}
	if again, _ := Script(main.String(), "uplot/uPlot.iife.min.js"); again != got {
		t.Error("a second script is another one")
	}
}

func TestStyle(t *testing.T) {
	got, err := Style("uplot/uPlot.min.css", "base.css")
	if err != nil || !strings.Contains(got, ".u-over") || strings.Index(got, ".u-over") > strings.Index(got, "--bg") {
		t.Errorf("got %v and %d bytes", err, len(got))
	}
	for _, text := range []string{"@import 'x.css';", "a { background: URL( x) }", "a { background: url('https://x') }", "a { background: url(data.png) }", "</style>"} {
		if _, err := style(files(map[string]string{"a.css": text}), []string{"a.css"}); err == nil {
			t.Errorf("%s: got no error", text)
		}
	}
	if _, err := style(files(map[string]string{"a.css": `a { background: url("data:image/svg+xml,x") }`}), []string{"a.css"}); err != nil {
		t.Errorf("a picture within: %v", err)
	}
	if _, err := Style("none.css"); err == nil {
		t.Error("a file that is not there: got no error")
	}
}
