// SPDX-License-Identifier: Apache-2.0

package scaffold_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/cmd/internal/scaffold"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policy/lint"
	"github.com/metehq/mete/policytest"
	"github.com/metehq/mete/policyyaml"
)

// start runs mete init in a new directory.
func start(t *testing.T, o scaffold.Options) (dir, out string, err error) {
	t.Helper()
	var b bytes.Buffer
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	o.Out = &b
	err = scaffold.Run(t.Context(), o)
	return o.Dir, b.String(), err
}

// For all kinds of answers, mete check accepts the policy without warnings. Its tests pass
// and reach every rule, and mete serve accepts the settings.
func TestRun_FilesAreValid(t *testing.T) {
	var all []scaffold.Answers
	for _, front := range []string{"", "http://127.0.0.1:3000", "nginx"} {
		for _, by := range []string{"", "key", "user", "ip:address/56", "cookie:session", "header:x-tenant", "query:customer"} {
			all = append(all, scaffold.Answers{Front: front, By: by})
		}
	}
	for _, limit := range [][2]string{{"100 per minute", ""}, {"7/3s", "1"}, {"0.5/10s", "3"}, {"1/1d", ""}, {"2 a second", "1000000"}, {"1000000/1s", ""}} {
		all = append(all, scaffold.Answers{By: "key", Rate: limit[0], Burst: limit[1]})
	}
	for _, a := range all {
		dir, _, err := start(t, scaffold.Options{Answers: a})
		if err != nil {
			t.Errorf("%+v: %v", a, err)
			continue
		}
		checkPolicy(t, filepath.Join(dir, "policy.yaml"))
		if c, _, err := config.Load(filepath.Join(dir, "mete.yaml"), nil, nil); err != nil || c.Policy != filepath.Join(dir, "policy.yaml") {
			t.Errorf("%+v: settings: %v, policy %q", a, err, c.Policy)
		}
		if t.Failed() {
			t.Fatalf("%+v:\n%s", a, read(t, dir, "policy.yaml"))
		}
	}
}

func checkPolicy(t *testing.T, path string) {
	t.Helper()
	data, err := policyyaml.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	m, err := policyyaml.Parse(path, data, policy.Options{HashKey: []byte("test")})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range lint.Check(m, time.Now()) {
		t.Errorf("warning: %+v", w)
	}
	tests, warnings, err := policytest.Read(m)
	if err != nil || len(tests) == 0 || len(warnings) > 0 {
		t.Fatalf("%d tests, %v, %v", len(tests), warnings, err)
	}
	report, err := policytest.Run(t.Context(), m, tests)
	if gaps := report.Gaps(); err != nil || report.Failed() > 0 || len(gaps) > 0 {
		t.Errorf("%d tests fail, gaps %v, %v", report.Failed(), gaps, err)
	}
}

// An invalid answer is asked for again, with the reason.
func TestRun_Asks(t *testing.T) {
	in := strings.NewReader("hprox\nlocalhost:3000\nhttp://127.0.0.1:3000\n" + // front
		"path\nuser\n" + // by
		"\nhttps://id.example/jwks.json\n" + // keys
		"fast\n0/1s\n50 per hour\n0\n7\n" + // rate and burst
		"redis://a,b\nredis://:secret@cache:6379/2\n") // store
	dir, out, err := start(t, scaffold.Options{Ask: true, In: in})
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{
		"1. Where do requests come from?", `front: "hprox" is unknown: write api, nginx,`, `front: "localhost:3000" is unknown`,
		"2. What identifies a client?", "by: path identifies pages, not clients",
		"write the URL or the file of the key set",
		"3. How many requests may one client make?", `limit: "fast" is not a rate: write a number of requests and a time, such as 100/1m`, `limit: "0/1s" is not a rate`,
		"at once, after a pause [10]: ", `burst: "0" must be a whole number between 1 and 1000000`,
		"4. Where should the counters be stored?", "more than one host",
		"mete check " + filepath.Join(dir, "policy.yaml"), "mete serve --config " + filepath.Join(dir, "mete.yaml"), "seq 12",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the output lacks %q", want)
		}
	}
	for line := range strings.SplitSeq(out, "\n") {
		if strings.HasPrefix(line, "     ") && len(line) > 79 { // the choices of a question
			t.Errorf("too long for a terminal: %s", line)
		}
	}
	policyText, settings := read(t, dir, "policy.yaml"), read(t, dir, "mete.yaml")
	for text, wants := range map[string][]string{
		policyText: {`limit_keys: ["jwt:sub"]`, "rate: 50/1h\n    burst: 7", `limit_keys: ["ip:address"]`},
		settings:   {`upstream: "http://127.0.0.1:3000"`, `keys: "https://id.example/jwks.json"`, `store: "redis://:secret@cache:6379/2"`},
	} {
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("a file lacks %q:\n%s", want, text)
			}
		}
	}
	if strings.Contains(out, "secret") {
		t.Error("the output has the password")
	}
	if t.Failed() {
		t.Log(out)
	}
	info, err := os.Stat(filepath.Join(dir, "mete.yaml"))
	if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("mete.yaml has a password and the mode %v, %v", info.Mode(), err)
	}
}

// Answers that are given are not asked for.
func TestRun_AsksForTheRest(t *testing.T) {
	_, out, err := start(t, scaffold.Options{Ask: true, In: strings.NewReader("5\n\n"),
		Answers: scaffold.Answers{Front: "api", By: "user", Rate: "10/1s"}})
	if err != nil || strings.Contains(out, "apart") || strings.Contains(out, "rate, such as") || !strings.Contains(out, "2. Where should the counters be stored?") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestRun_InvalidFlags(t *testing.T) {
	dir, out, err := start(t, scaffold.Options{Ask: true, In: strings.NewReader(""),
		Answers: scaffold.Answers{Front: "ftp://x", By: "who:", Rate: "5", Store: "floppy:", Keys: "k"}})
	if err == nil || out != "" {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{`front: the scheme "ftp"`, "by: ", `limit: "5"`, `store: "floppy"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v: lacks %q", err, want)
		}
	}
	empty(t, dir)

	for _, a := range []scaffold.Answers{{Front: "http://u:secret@a"}, {Front: "http://"}, {Front: "http://%"}, {Burst: "-1"}, {Burst: "1000001"}, {Rate: "1/1x"}, {Keys: "k"}, {By: "user", Keys: "k"}, {By: "tenant"}} {
		if dir, _, err := start(t, scaffold.Options{Answers: a}); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%+v: %v", a, err)
		} else {
			empty(t, dir)
		}
	}
}

func TestRun_InputEnds(t *testing.T) {
	dir, out, err := start(t, scaffold.Options{Ask: true, In: strings.NewReader("api\nkey")})
	if !errors.Is(err, scaffold.ErrEnded) {
		t.Errorf("%v\n%s", err, out)
	}
	empty(t, dir)
	dir, _, err = start(t, scaffold.Options{Ask: true, In: strings.NewReader(strings.Repeat("x", 1<<16))})
	if err == nil || !strings.Contains(err.Error(), "read an answer") {
		t.Error(err)
	}
	empty(t, dir)
}

// Ctrl-C ends a question, although a read of a terminal goes on.
func TestRun_Interrupted(t *testing.T) {
	in, typed := io.Pipe()
	defer typed.Close()
	ctx, interrupt := context.WithCancel(t.Context())
	out := writerFunc(func(p []byte) (int, error) {
		if strings.Contains(string(p), "[api]") { // the first question waits
			interrupt()
		}
		return len(p), nil
	})
	dir := t.TempDir()
	if err := scaffold.Run(ctx, scaffold.Options{Dir: dir, Ask: true, In: in, Out: out}); err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Error(err)
	}
	empty(t, dir)
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestRun_RefusesToReplace(t *testing.T) {
	for _, files := range [][]string{{"policy.yaml"}, {"mete.yaml"}, {"policy.yaml", "mete.yaml"}} {
		dir := t.TempDir()
		for _, name := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("mine"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, out, err := start(t, scaffold.Options{Dir: dir, Ask: true, In: strings.NewReader("")})
		exists, ok := errors.AsType[*scaffold.ExistsError](err)
		if !ok || len(exists.Files) != len(files) || out != "" || !strings.Contains(err.Error(), "--force") {
			t.Fatalf("%v: %v\n%s", files, err, out)
		}
		for i, name := range files {
			if exists.Files[i] != filepath.Join(dir, name) || read(t, dir, name) != "mine" {
				t.Errorf("%v: %v, %q", files, exists.Files, read(t, dir, name))
			}
		}
		if _, _, err := start(t, scaffold.Options{Dir: dir, Force: true}); err != nil {
			t.Error(err)
		}
		for _, name := range []string{"policy.yaml", "mete.yaml"} {
			if text := read(t, dir, name); text == "mine" {
				t.Errorf("--force kept %s", name)
			}
		}
	}
}

// Both files are there, or none, and nothing else.
func TestRun_WritesBothOrNone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	if _, _, err := start(t, scaffold.Options{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("%v, %v", entries, err)
	}
	// The second file cannot be replaced: a directory has its name.
	dir = t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "mete.yaml"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, _, err := start(t, scaffold.Options{Dir: dir}); err == nil {
		t.Error("a directory was replaced")
	}
	if _, err := os.Stat(filepath.Join(dir, "policy.yaml")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("policy.yaml: %v", err)
	}
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func empty(t *testing.T, dir string) {
	t.Helper()
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("%v, %v, want an empty directory", entries, err)
	}
}

func TestRun_Gateways(t *testing.T) {
	for _, front := range []string{"api", "nginx-lua", "haproxy", "caddy", "traefik", "NGINX"} {
		dir, out, err := start(t, scaffold.Options{Answers: scaffold.Answers{Front: front}})
		profile := "decision_profile: " + strings.ToLower(front)
		if front == "api" {
			profile = "programs ask here"
		}
		if err != nil || !strings.Contains(read(t, dir, "mete.yaml"), profile) {
			t.Errorf("%s: %v\n%s", front, err, out)
		}
		if _, _, err := config.Load(filepath.Join(dir, "mete.yaml"), nil, nil); err != nil {
			t.Errorf("%s: %v", front, err)
		}
	}
}
