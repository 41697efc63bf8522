// SPDX-License-Identifier: Apache-2.0

package policyyaml_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policyyaml"
)

const yamlRule = `
rules:
  - name: free
    limit_keys: ["header:x-api-key"]
    algorithm: token_bucket
    algorithm_config: { rps: %s, burst: %s }
`

// TestParse_NumbersAreExact reads rates whose nearest floats are something else.
func TestParse_NumbersAreExact(t *testing.T) {
	for _, tt := range []struct{ rps, burst, wantRate, wantCapacity string }{
		{"0.1", "20", "0.1/1s", "20"},
		{"1e1", "2e1", "10/1s", "20"},
		{"+10", "20.", "10/1s", "20"},
		{".5", "0x14", "0.5/1s", "20"},
		{"10", "0o24", "10/1s", "20"},
		{"1.E+1", "20.0", "10/1s", "20"},
		{"10", "90071992547.409", "10/1s", "90071992547.409"},
	} {
		name := fmt.Sprintf("rps %s burst %s", tt.rps, tt.burst)
		m, err := policyyaml.Parse("p.yaml", fmt.Appendf(nil, yamlRule, tt.rps, tt.burst), policy.Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		limit := m.Rules()[0].Limits[0].Bucket
		rate, err := bucket.ParseRate(tt.wantRate)
		if err != nil {
			t.Fatal(err)
		}
		want, err := bucket.NewLimit(limit.Capacity(), rate)
		if err != nil {
			t.Fatal(err)
		}
		wn, wp := want.Refill()
		if n, p := limit.Refill(); n != wn || p != wp || limit.Capacity().String() != tt.wantCapacity {
			t.Errorf("%s: got %v, want capacity %s, rate %s", name, limit, tt.wantCapacity, tt.wantRate)
		}
	}
}

// TestParse_NumbersAreComparedAsWritten: JSON can write 0x10 only as 16, but a match compares text.
func TestParse_NumbersAreComparedAsWritten(t *testing.T) {
	for _, number := range []string{"0x10", "0o17", "+5", ".5", "5.", "1.10", "1e3", "7"} {
		file := strings.Replace(fmt.Sprintf(yamlRule, "1", "2"), "    algorithm:", "    match: { \"header:x\": ["+number+", other] }\n    algorithm:", 1) +
			"kill_switches: [{ scope_key: \"header:y\", scope_value: " + number + ", reason: r, expires_at: 2999-01-01T00:00:00Z }]\n" +
			"tests: [{ name: t, request: { \"header:x\": " + number + ", \"header:x-api-key\": k }, expect: allowed }]\n"
		m, err := policyyaml.Parse("p.yaml", []byte(file), policy.Options{})
		if err != nil {
			t.Errorf("%s: %v", number, err)
			continue
		}
		if matches, _ := m.Match(nil, policy.Map{"header:x": number, "header:x-api-key": "k"}, 0, 0); len(matches) != 1 {
			t.Errorf("match %s: %d matches of a request with that value, want 1", number, len(matches))
		}
		if _, v := m.Match(nil, policy.Map{"header:y": number}, 0, 0); v.Block == nil {
			t.Errorf("the kill switch on %s does not block that value", number)
		}
		if value, _ := testsOf(t, m)[0].Steps[0].Attributes(0).Lookup(m.Attributes()[0]); value != number {
			t.Errorf("a request of a test has the value %q, want %q", value, number)
		}
	}
}

// TestParse_BadEncoding: the place of the first byte that is no text is known.
func TestParse_BadEncoding(t *testing.T) {
	for _, tt := range []struct{ name, file, want string }{
		{"p.yaml", "rules:\n  - name: caf\xe9\n", "p.yaml:2:14: not YAML: the byte 0xE9 is not UTF-8; save the file as UTF-8"},
		{"p.json", "{\"rules\": \"\xff\"}", "p.json:1:12: not JSON: the byte 0xFF is not UTF-8; save the file as UTF-8"},
		{"p.yaml", "rules:\n  - name: ä\x00\n", "p.yaml:2:12: not YAML: the file has the control character 0x00; remove it"},
	} {
		if _, err := policyyaml.Parse(tt.name, []byte(tt.file), policy.Options{}); err == nil || err.Error() != tt.want {
			t.Errorf("%q: error %v, want %s", tt.file, err, tt.want)
		}
	}
}

// TestParse_WordsStayWords: what YAML 1.1 takes for booleans, dates and numbers
// are strings, and match as such.
func TestParse_WordsStayWords(t *testing.T) {
	for _, word := range []string{"on", "yes", "no", "off", "y", "2026-01-02", "12:30:45", "1_000", "0b11", "=", "ok"} {
		file := strings.Replace(fmt.Sprintf(yamlRule, "1", "2"), "    algorithm:", "    match: { \"header:x\": "+word+" }\n    algorithm:", 1)
		m, err := policyyaml.Parse("p.yaml", []byte(file), policy.Options{})
		if err != nil {
			t.Errorf("match %s: %v", word, err)
			continue
		}
		matches, _ := m.Match(nil, policy.Map{"header:x": word, "header:x-api-key": "k"}, 0, 0)
		if len(matches) != 1 {
			t.Errorf("match %s: got %d matches of a request with that value, want 1", word, len(matches))
		}
	}
}

// TestParse_AliasesStandForValues reads a file that defines its limit once.
func TestParse_AliasesStandForValues(t *testing.T) {
	const file = `
rules:
  - { name: a, limit_keys: ["ip:address"], algorithm: token_bucket, algorithm_config: &slow { rps: 1, burst: 2 } }
  - { name: b, limit_keys: ["header:x"], algorithm: token_bucket, algorithm_config: *slow }
`
	m, err := policyyaml.Parse("p.yaml", []byte(file), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if a, b := m.Rules()[0].Limits[0].Bucket, m.Rules()[1].Limits[0].Bucket; a != b {
		t.Errorf("got the limits %v and %v, want the same", a, b)
	}
}

// TestParse_JSONByNameOrBrace: the name decides, and else the first character.
func TestParse_JSONByNameOrBrace(t *testing.T) {
	const json = `{"rules":[{"name":"a","limit_keys":[],"algorithm":"token_bucket","algorithm_config":{"rps":1,"burst":2}}]}`
	for _, name := range []string{"p.json", "p.JSON", "p.yaml", "stdin"} {
		if _, err := policyyaml.Parse(name, []byte(" \n"+json), policy.Options{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := policyyaml.Parse("p.json", []byte("rules: []"), policy.Options{}); err == nil {
		t.Error("YAML in p.json: got no error")
	}
	if _, err := policyyaml.Parse("policy", []byte("\ufeff"+json), policy.Options{}); err != nil {
		t.Errorf("byte order mark: %v", err)
	}
}

// TestParse_Mistakes compares the errors of every file in testdata/bad with a list. Each line of the list is
// the beginning of an error. Package policy tests the texts of its own errors.
func TestParse_Mistakes(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, ".want") {
			continue
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			_, err = policyyaml.Parse(filepath.Base(file), data, policy.Options{})
			var got policyyaml.Errors
			if !errors.As(err, &got) {
				t.Fatalf("got error %v, want a policyyaml.Errors", err)
			}
			want, err := os.ReadFile(file + ".want")
			if err != nil {
				t.Fatalf("%v; got:\n%v", err, got)
			}
			lines := strings.Split(strings.TrimRight(string(want), "\n"), "\n")
			same := len(lines) == len(got)
			for i := 0; same && i < len(lines); i++ {
				same = strings.HasPrefix(got[i].String(), lines[i])
			}
			if !same {
				t.Errorf("got:\n%v\nwant:\n%s", got, want)
			}
		})
	}
}

// TestParse_Hostile: files that are small and want to become large.
func TestParse_Hostile(t *testing.T) {
	var laughs strings.Builder
	laughs.WriteString("a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]\n")
	for i := 1; i < 12; i++ {
		fmt.Fprintf(&laughs, "a%d: &a%d [", i, i)
		for range 10 {
			fmt.Fprintf(&laughs, "*a%d,", i-1)
		}
		laughs.WriteString("]\n")
	}
	for name, tt := range map[string]struct{ file, want string }{
		"billion laughs": {laughs.String(), "with its aliases expanded"},
		"cycle":          {"rules: &r [*r]", "contains itself"},
		"depth":          {"rules: " + strings.Repeat("[", 500) + strings.Repeat("]", 500), "nested more than"},
		"deeper":         {strings.Repeat("[", 100_000), "not YAML"},
		"deep JSON":      {strings.Repeat(`{"rules":`, 100_000), "not JSON"},
		"control":        {"rules\x01: 1", "not YAML"},
		"terminal":       {"rules:\n  - \"\\e[31mred\": 1", `\x1b[31mred`},
		"not UTF-8":      {"rules: \xff", "not YAML"},
		"dashes":         {strings.Repeat("- ", 100_000), "nested more than"},
		"questions":      {strings.Repeat("? ", 100_000), "not YAML"},
		"tag of a key":   {"!!int rules: []", "/rules: the tag !!int is not supported"},
		"keys":           {strings.Repeat("k: v\n", 100_000), "more than 10000 fields"},
		"large":          {strings.Repeat("#", policyyaml.MaxBytes+1), ""},
	} {
		_, err := policyyaml.Parse("f", []byte(tt.file), policy.Options{})
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%s: got error %v, want one with %q", name, err, tt.want)
		}
	}
}

func TestRead_Bounds(t *testing.T) {
	file := filepath.Join(t.TempDir(), "p.yaml")
	for size, want := range map[int]bool{policyyaml.MaxBytes: true, policyyaml.MaxBytes + 1: false} {
		if err := os.WriteFile(file, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
		if data, err := policyyaml.Read(file); (err == nil) != want {
			t.Errorf("Read of %d bytes: got %d bytes, error %v", size, len(data), err)
		}
	}
	var mistakes policyyaml.Errors
	for _, path := range []string{filepath.Join(t.TempDir(), "absent"), t.TempDir()} {
		if _, err := policyyaml.LoadFile(path); err == nil || errors.As(err, &mistakes) {
			t.Errorf("Load(%q): got error %v, want one about reading", path, err)
		}
	}
}

// FuzzParse: every file gives a policy or an Errors with printable text.
func FuzzParse(f *testing.F) {
	files, _ := filepath.Glob("testdata/bad/*")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := policyyaml.Parse("fuzz", data, policy.Options{})
		var mistakes policyyaml.Errors
		if (m == nil) == (err == nil) || err != nil && !errors.As(err, &mistakes) {
			t.Fatalf("Parse(%q): got a policy: %t, error %v", data, m != nil, err)
		}
		for _, m := range mistakes {
			if strings.ContainsAny(m.String(), "\x00\x1b\n") {
				t.Errorf("Parse(%q): %q is not one printable line", data, m.String())
			}
		}
	})
}

// loadFile is [policyyaml.LoadFile] with options.
func loadFile(path string, opts policy.Options) (*policy.Matcher, error) {
	data, err := policyyaml.Read(path)
	if err != nil {
		return nil, err
	}
	return policyyaml.Parse(path, data, opts)
}

// A program can embed its policy, in either language.
func TestLoad(t *testing.T) {
	for _, text := range []string{fmt.Sprintf(yamlRule, "10", "20"), `{"rules": [{"name": "free", "limit_keys": [], "algorithm_config": {"rps": 10, "burst": 20}}]}`} {
		m, err := policyyaml.Load([]byte(text), policy.Options{})
		if err != nil || len(m.Rules()) != 1 || m.Rules()[0].Name != "free" {
			t.Errorf("%s: %v", text, err)
		}
	}
	_, err := policyyaml.Load([]byte(fmt.Sprintf(yamlRule, "10", "-5")), policy.Options{})
	if err == nil || !strings.HasPrefix(err.Error(), "policy:6:41: /rules/0/algorithm_config/burst: ") {
		t.Errorf("a negative burst: %v, want the place", err)
	}
}

// Each error can be shown with its place in the file.
func TestErrors_Annotate(t *testing.T) {
	data := []byte("\ufeffrules:\n  - name: a\n    limit_keys: []\n    algorithm_config: { rps: 1, burst: -5 }\n    mode: shadwo\n")
	_, err := policyyaml.Parse("p.yaml", data, policy.Options{})
	var mistakes policyyaml.Errors
	if !errors.As(err, &mistakes) {
		t.Fatal(err)
	}
	lines := strings.Split(mistakes.Annotate(data), "\n")
	for i, want := range []string{
		"p.yaml:4:40: /rules/0/algorithm_config/burst: ", "    3 |     limit_keys: []", "  > 4 |     algorithm_config: { rps: 1, burst: -5 }",
		"      |                                        ^", "p.yaml:5:11: /rules/0/mode: ",
		"    4 |     algorithm_config: { rps: 1, burst: -5 }", "  > 5 |     mode: shadwo", "      |           ^", "",
	} {
		if i >= len(lines) || !strings.HasPrefix(lines[i], want) {
			t.Fatalf("line %d is not %q in\n%s", i+1, want, strings.Join(lines, "\n"))
		}
	}
	if got := (policyyaml.Errors{{File: "p.yaml"}}).Annotate(nil); strings.Count(got, "\n") != 1 {
		t.Errorf("a mistake without a place: %q, want one line", got)
	}
}
