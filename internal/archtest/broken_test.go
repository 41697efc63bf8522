// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// sound is a small repository without findings.
var sound = map[string]string{
	"go.mod":     "module example.org/m\n\ngo 1.26.0\n",
	"cmd/go.mod": "module example.org/m/cmd\n\ngo 1.26.0\n\nrequire (\n\texample.org/m v0.0.0\n\texample.net/x v1.0.0 // indirect\n)\n\nreplace example.org/m => ../\n",
	"go.work":    "go 1.26.0\n\nuse (\n\t.\n\t./cmd\n)\n",

	"m.go":               source("m", `import "example.org/m/policy"`),
	"bucket/b.go":        source("bucket", `import "math"`),
	"policy/p.go":        source("policy", `import "example.org/m/bucket"`),
	"memstore/m.go":      source("memstore", `import ("example.org/m"; "example.org/m/bucket")`),
	"memstore/m_test.go": testSource("memstore_test", `import "example.org/m/storetest"`),
	"storetest/s.go":     source("storetest", `import "example.org/m"`),
	"httplimit/h.go":     source("httplimit", `import "example.org/m/internal/httpfacts"`),
	"httplimit/h_test.go": testSource("httplimit_test", `import ("testing"; "testing/synctest"; "time"; "example.org/m/memstore")
		func TestH(t *testing.T) { synctest.Test(t, func(t *testing.T) { time.Sleep(1) }) }`),
	"httplimit/pass_test.go": testSource("httplimit_test", `import ("testing/synctest"; "time")
		func pass() { time.Sleep(1); synctest.Wait() }
		func bounded(c chan int) { select { case <-c: case <-time.After(1): } }
		func paced(c chan int, t *time.Ticker) { select { case <-c: case <-t.C: } }`),
	"proxy/p.go":              source("proxy", `import "example.org/m/httplimit"`),
	"internal/httpfacts/f.go": source("httpfacts", `import "example.org/m/policy"`),
	"cmd/mete/main.go":        source("main", `import ("example.net/x"; "example.org/m/memstore"; "example.org/m/proxy")`),
}

func source(name, body string) string {
	return fmt.Sprintf("%s\n\n// Package %s is for this test.\npackage %[2]s\n\n%s\n", spdxLine, name, body)
}

func testSource(name, body string) string {
	return fmt.Sprintf("%s\n\npackage %s\n\n%s\n", spdxLine, name, body)
}

func TestRules_SoundTree(t *testing.T) {
	for _, r := range rules {
		if found := r.check(loadFiles(t, nil)); len(found) != 0 {
			t.Errorf("%s: findings on a sound tree: %v", r.name, found)
		}
	}
}

func TestRules_BrokenTree(t *testing.T) {
	tests := []struct {
		rule, path, text string
		want             string // place: part of the finding
	}{
		{"imports", "bucket/b.go", source("bucket", `import "example.org/m/policy"`), "bucket/b.go: bucket must not import policy"},
		{"imports", "policy/p.go", source("policy", `import "example.org/m"`), "policy/p.go: policy must not import ."},
		{"imports", "m.go", source("m", `import "example.org/m/memstore"`), "m.go: . must not import memstore"},
		{"imports", "memstore/m.go", source("memstore", `import "example.org/m/policy"`), "memstore/m.go: memstore must not import policy"},
		{"imports", "httplimit/h.go", source("httplimit", `import "example.org/m/keyed"`), "httplimit/h.go: httplimit must not import keyed"},
		{"imports", "httplimit/h.go", source("httplimit", `import "example.org/m/httpapi"`), "httplimit/h.go: httplimit must not import httpapi"},
		{"imports", "httplimit/i_test.go", testSource("httplimit", `import "example.org/m/cmd/mete"`), "httplimit/i_test.go: httplimit must not import cmd/mete"},
		{"imports", "proxy/p.go", source("proxy", `import "example.org/m/cmd/mete"`), "proxy/p.go: proxy must not import cmd/mete"},
		{"imports", "internal/httpfacts/f.go", source("httpfacts", `import "example.org/m/proxy"`), "internal/httpfacts/f.go: internal must not import proxy"},
		{"imports", "novel/n.go", source("novel", ""), "novel/n.go: package novel has no layer"},

		{"stands alone", "go.mod", sound["go.mod"] + "require example.net/x v1.0.0\n", "go.mod: must not require"},
		{"stands alone", "policy/p_test.go", testSource("policy_test", `import "example.net/x"`), "policy/p_test.go: must not import example.net/x"},

		{"modules agree", "pgstore/go.mod", "module example.org/m/pgstore\n\ngo 1.26.0\n", "go.work: does not use ./pgstore"},
		{"modules agree", "proof/envoy/tools/ghz/go.mod", "module example.org/m/proof/envoy/tools/ghz\n\ngo 1.25.0\n", "proof/envoy/tools/ghz/go.mod: go 1.25.0"},
		{"modules agree", "go.work", sound["go.work"] + "use ./gone\n", "go.work: uses ./gone"},
		{"modules agree", "cmd/go.mod", "module example.org/m/cmd\n\ngo 1.25.0\n", "cmd/go.mod: go 1.25.0"},
		{"modules agree", "cmd/go.mod", "module example.org/other\n\ngo 1.26.0\n", "cmd/go.mod: want example.org/m/cmd"},
		{"modules agree", "cmd/go.mod", sound["cmd/go.mod"] + "replace example.net/x => ../x\n", "cmd/go.mod: replaces example.net/x"},
		{"modules agree", "policy/p.go", source("policy", `const p = "https://example.org/m"`), "policy/p.go:6: debug.ReadBuildInfo"},

		{"documented", "policy/q.go", source("policy", ""), "policy: has 2 package comments"},
		{"documented", "policy/p.go", testSource("policy", ""), "policy: has 0 package comments"},
		{"documented", "policy/p.go", strings.Replace(source("policy", ""), "Package", "The", 1), `policy/p.go: begin with "Package policy"`},

		{"license", "policy/q.go", "package policy\n", "policy/q.go: must start with"},

		{"names tell", "policy/helpers.go", testSource("policy", ""), "policy/helpers.go: name the file"},
		{"names tell", "policy/util_test.go", testSource("policy", ""), "policy/util_test.go: name the file"},
		{"names", "internal/common/c.go", source("common", ""), "internal/common: name the package"},

		{"small", "policy/p.go", source("policy", strings.Repeat("\n", 500)), "policy/p.go: lines, want at most 500"},
		{"small", "policy/p.go", source("policy", "func f() {"+strings.Repeat("\n", 70)+"}"), "policy/p.go:6: f has 71 lines"},

		{"no clock", "bucket/b.go", source("bucket", `import "os"`), "bucket/b.go: must not import os"},
		{"no clock", "bucket/b.go", source("bucket", "import \"time\"\n\nvar now = time.Now()"), "bucket/b.go:8: time.Now"},

		{"after their action", "policy/p.go", source("policy", "func (p) apart() bool {}\nfunc setApart() {}\n"), "policy/p.go:6: name the function apart"},
		{"after their action", "policy/p.go", source("policy", "func closed() bool {}\nfunc answered() error {}\n"), "policy/p.go:7: name the function answered"},

		{"sleeps", "policy/p_test.go", testSource("policy_test", "func f() { time.Sleep(1) }"), "policy/p_test.go:5: time.Sleep"},
		{"sleeps", "policy/p_test.go", testSource("policy_test", "func f() { <-time.After(1) }"), "policy/p_test.go:5: <-time.After"},
		{"sleeps", "policy/p.go", source("policy", "func f() { <-time.NewTimer(1).C }"), "policy/p.go:6: <-time.NewTimer"},
		{"sleeps", "policy/p.go", source("policy", "func f() { select { case <-time.After(1): } }"), "policy/p.go:6: <-time.After"},
		{"sleeps", "policy/p.go", source("policy", "func f(t *time.Timer) { <-t.C }"), "policy/p.go:6: <-t.C"},
		{"sleeps", "policy/p.go", source("policy", "func f(s struct{ t time.Ticker }) { _ = <-s.t.C }"), "policy/p.go:6: <-s.t.C"},
		{"sleeps", "policy/p.go", source("policy", "func f(t *time.Ticker) { select { case <-t.C: } }"), "policy/p.go:6: <-t.C"},
		{"sleeps", "policy/p.go", source("policy", "func f(t *time.Ticker, c chan int) { select { case <-c: <-t.C; case <-t.C: } }"), "policy/p.go:6: <-t.C"},
		{"sleeps", "policy/p_test.go", testSource("policy_test", "import \"testing/synctest\"\nfunc f(t *time.Ticker) { for { <-t.C } }"), "policy/p_test.go:6: <-t.C"},
		{"sleeps", "policy/p.go", source("policy", "func f(c chan int) { select { case <-c: <-time.Tick(1); default: } }"), "policy/p.go:6: <-time.Tick"},
		{"sleeps", "policy/p_test.go", testSource("policy_test", "import \"testing/synctest\"\nfunc TestP() { time.Sleep(1) }"), "policy/p_test.go:6: time.Sleep"},
		{"skips", "policy/p_test.go", testSource("policy_test", "func f() { t.Skip() }"), "policy/p_test.go:5: t.Skip"},
	}
	for _, tt := range tests {
		t.Run(tt.want, func(t *testing.T) {
			r := rules[slices.IndexFunc(rules, func(r rule) bool { return strings.Contains(r.name, tt.rule) })]
			found := r.check(loadFiles(t, map[string]string{tt.path: tt.text}))
			if len(found) != 1 {
				t.Fatalf("findings: %v, want one: %s", found, tt.want)
			}
			place, what, _ := strings.Cut(tt.want, ": ")
			if found[0].place != place || !strings.Contains(found[0].what, what) {
				t.Errorf("finding: %s: %s, want %s", found[0].place, found[0].what, tt.want)
			}
		})
	}
}

func TestSizes_ReasonForALongFunction(t *testing.T) {
	text := "// f does much.\n//\n// long: it is a table.\nfunc f() {" + strings.Repeat("\n", 70) + "}"
	if found := checkSizes(loadFiles(t, map[string]string{"policy/p.go": source("policy", text)})); len(found) != 0 {
		t.Errorf("findings: %v, want none", found)
	}
}

func TestModules_Separate(t *testing.T) {
	module := map[string]string{"proof/envoy/tools/ghz/go.mod": "module example.org/m/proof/envoy/tools/ghz\n\ngo 1.26.0\n"}
	if found := checkModules(loadFiles(t, module)); len(found) != 0 {
		t.Errorf("a separate module: findings %v, want none", found)
	}
	module["go.work"] = sound["go.work"] + "use ./proof/envoy/tools/ghz\n"
	if found := checkModules(loadFiles(t, module)); len(found) != 1 {
		t.Errorf("a separate module in go.work: findings %v, want one", found)
	}
}

// TestModules_SeparateAreChecked compares the list with the directories and with scripts/check, which has the same list.
func TestModules_SeparateAreChecked(t *testing.T) {
	script, err := os.ReadFile("../../scripts/check")
	if err != nil {
		t.Fatal(err)
	}
	if want := "for dir in " + strings.Join(separate, " ") + "; do"; !strings.Contains(string(script), want) {
		t.Errorf("scripts/check lacks %q", want)
	}
	for _, dir := range separate {
		if _, err := os.Stat(filepath.Join("../..", dir, "go.mod")); err != nil {
			t.Error(err)
		}
	}
}

func TestLoad_NoRootModule(t *testing.T) {
	if _, err := load(fstest.MapFS{"cmd/go.mod": {Data: []byte("module m\n")}}); err == nil {
		t.Error("load of a tree without a root module: no error")
	}
}

// loadFiles loads the sound tree with added or replaced files.
func loadFiles(t *testing.T, changed map[string]string) *tree {
	t.Helper()
	files := maps.Clone(sound)
	maps.Copy(files, changed)
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	loaded, err := load(fsys)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}
