// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/pgstore/rules"
)

// A rulesDB is a schema for mete rules.
type rulesDB struct {
	t   *testing.T
	url string
}

func newRulesDB(t *testing.T) *rulesDB {
	t.Helper()
	u, err := url.Parse(proctest.PostgresURL(t))
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	query.Set("schema", proctest.PostgresSchema(t))
	u.RawQuery = query.Encode()
	return &rulesDB{t, u.String()}
}

// do runs mete rules, which must end with the code, and returns what it printed.
func (d *rulesDB) do(code int, args ...string) (stdout, stderr string) {
	d.t.Helper()
	stdout, stderr, got := run(d.t, append([]string{"rules", "--db", d.url}, args...)...)
	if got != code {
		d.t.Fatalf("mete rules %q: code %d, want %d\n%s%s", args, got, code, stdout, stderr)
	}
	return stdout, stderr
}

// wantOutput runs mete rules and checks that its output contains want.
func (d *rulesDB) wantOutput(code int, want string, args ...string) {
	d.t.Helper()
	if stdout, stderr := d.do(code, args...); !strings.Contains(stdout+stderr, want) {
		d.t.Errorf("mete rules %q: %q and %q, want %q", args, stdout, stderr, want)
	}
}

func TestRules_FromNothing(t *testing.T) {
	d := newRulesDB(t)
	d.wantOutput(0, "there are no rules in the schema test_", "list")
	d.wantOutput(1, "no active rule", "export")
	d.wantOutput(0, "+ user-free: algorithm_config/burst 50, algorithm_config/rps 10, is_active true, is_fallback false, key_pattern user:{user_id}, "+
		`limit_keys ["jwt:sub"], match/jwt:plan free, name user-free, policy rules, priority 0, scope user`+"\n",
		"set", "--pattern", "user:{user_id}", "--plan", "free", "--rate", "10", "--burst", "50")
	d.wantOutput(0, "+ everyone: ", "set", "everyone", "--pattern", "global", "--rate", "50000", "--burst", "100000", "--description", "all of it")
	d.wantOutput(0, "~ user-free: algorithm_config/rps 12.5 (was 10)\n1 rule changed\n", "set", "--pattern", "user:{user_id}", "--plan", "free", "--rate", "12.5")
	d.wantOutput(0, "nothing changes", "set", "user-free", "--rate", "12.50")
	d.wantOutput(0, "~ user-free: match/jwt:plan NULL (was free)\n", "set", "user-free", "--plan", "")
	d.wantOutput(0, "~ everyone: is_active false (was true)", "disable", "everyone")
	d.wantOutput(0, "~ everyone: is_active true (was false)", "enable", "everyone", "--dry-run")
	d.wantOutput(0, "nothing changes", "disable", "everyone")
	d.wantOutput(1, "no active rule", "disable", "user-free")
	d.wantOutput(0, "- everyone", "delete", "everyone")
	d.wantOutput(0, "1 rule would change; nothing is written", "set", "user-free", "--spec", `{"mode":"shadow"}`, "--dry-run")

	stdout, _ := d.do(0, "list")
	for _, want := range []string{"NAME", "user-free", "user:{user_id}", "12.5", "yes"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("list lacks %q:\n%s", want, stdout)
		}
	}
	stdout, _ = d.do(0, "list", "--format", "json", "user-free")
	var list []map[string]any
	if err := json.Unmarshal([]byte(stdout), &list); err != nil || len(list) != 1 {
		t.Fatalf("list as JSON: %v\n%s", err, stdout)
	}
	if r := list[0]; r["name"] != "user-free" || r["rate_per_second"] != 12.5 || r["plan"] != nil || r["version"] != 3.0 || r["is_active"] != true {
		t.Errorf("list as JSON: %v", list)
	}
}

func TestRules_Refusals(t *testing.T) {
	d := newRulesDB(t)
	d.do(0, "set", "a", "--pattern", "ip:{ip}", "--rate", "1", "--burst", "5")
	for _, tt := range []struct {
		code int
		want string
		args string
	}{
		{1, `rule "b": key_pattern: another active rule has this key_pattern and plan`, "set b --pattern ip:{ip} --rate 1 --burst 5"},
		{1, `rule 1 "a": rate_per_second: must be a number above 0`, "set a --rate NaN"},
		{1, `rule 1 "a": burst_capacity: must be a number from 1`, "set a --burst -5"},
		{1, `spec/mode: mode must be enforce, shadow, off, or a share`, `set a --spec {"mode":"x"}`},
		{1, `did you mean "user_id"?`, "set b --pattern user:{user_di} --rate 1 --burst 1"},
		{1, `there is no rule "b"; to add it, set --pattern`, "set b --rate 1"},
		{1, `there is no rule "b"`, "disable b"},
		{1, `there is no rule "b"`, "list b"},
		{1, `burst_capacity: is required with rate_per_second`, "set b --pattern global --rate 1"},
		{1, `the rule has version 1, not 7: it has changed in the meantime`, "set a --rate 2 --if-version 7"},
		{1, `the rule has version 0, not 1`, "set b --pattern global --rate 1 --burst 1 --if-version 1"},
		{1, `the rule has version 1, not 2`, "disable a --if-version 2"},
		{2, "--spec: must be a JSON object, not \"[]\"\n", `set a --spec []`},
		{1, `spec/mode: mode must be a share of the keys between 0% and 100% (got "101%")`, "set a --mode 101%"},
		{2, `open /does/not/exist`, `import /does/not/exist`},
	} {
		d.wantOutput(tt.code, tt.want, strings.Fields(tt.args)...)
	}
	stdout, _ := d.do(0, "set", "a", "--rate", "2", "--if-version", "1")
	if !strings.Contains(stdout, "algorithm_config/rps 2 (was 1)") {
		t.Errorf("with the version that it has: %q", stdout)
	}
}

func TestRules_FileRoundTrip(t *testing.T) {
	examples, err := filepath.Glob("../../../examples/policies/*.yaml")
	if err != nil || len(examples) == 0 {
		t.Fatalf("%d examples, %v", len(examples), err)
	}
	recipes, err := filepath.Glob("../../../examples/cookbook/*.yaml")
	if err != nil || len(recipes) == 0 {
		t.Fatalf("%d recipes, %v", len(recipes), err)
	}
	for i, recipe := range recipes {
		if !testing.Short() || i%4 == 0 {
			examples = append(examples, recipe)
		}
	}
	examples = append(examples, grown(t))
	d := newRulesDB(t)
	for _, file := range examples {
		d.do(0, "import", "--replace", file)
		exported, _ := d.do(0, "export")
		path := filepath.Join(t.TempDir(), "exported.yaml")
		if err := os.WriteFile(path, []byte(exported), 0o600); err != nil {
			t.Fatal(err)
		}
		want, got := checked(t, file), checked(t, path)
		if want != got {
			t.Errorf("%s: mete check says of the export\n%s\nand of the file\n%s\nexport:\n%s", file, got, want, exported)
		}
		if rows := checked(t, d.url); rows != want {
			t.Errorf("%s: mete check says of the rows\n%s\nand of the file\n%s", file, rows, want)
		}
		d.wantOutput(0, "nothing changes", "import", "--replace", path)
	}
}

// grown returns a policy file with all fields for rules.
func grown(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "grown.yaml")
	if err := os.WriteFile(path, []byte(`
bundle_version: 7
headers: [draft-11, legacy]
policies:
  - id: v1
    spec:
      selector: { pathPrefix: /v1, methods: [GET, POST], hosts: api.example }
      mode: 25%
      jitter: 20%
      rules:
        - { name: users, limit_keys: ["header:x-user"], algorithm_config: { rps: 5, burst: 10 } }
        - { name: search, limit_keys: ["header:x-user"], match: { path: /v1/search }, group: search, mode: "off", algorithm_config: { rps: 1, burst: 2 } }
        - name: budget
          limit_keys: ["header:x-team"]
          headers: none
          algorithm: cost_based
          algorithm_config:
            budget: 1000
            period: 24h
            staged_actions: [{ threshold: 80, action: warn }, { threshold: 90, action: throttle, delay: 200ms }]
      fallback_limit: { limit_keys: ["ip:address"], algorithm_config: { rps: 1, burst: 3 } }
  - id: rest
    spec:
      rules: [{ name: rest, limit_keys: ["ip:address"], mode: 50%, algorithm_config: { rps: 1, burst: 3 } }]
`), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// An import names the fields that it leaves out, and keeps the overrides of a file.
func TestRules_ImportLosesNothingSilently(t *testing.T) {
	d := newRulesDB(t)
	d.wantOutput(0, "mete rules: ignored, because rows have a revision instead: /bundle_version\n", "import", grown(t))
	path := filepath.Join(t.TempDir(), "p.yaml")
	if err := os.WriteFile(path, []byte(`rules: [{ name: a, limit_keys: [], algorithm_config: { rps: 1, burst: 2 } }]
overrides:
  - { id: o, action: block, match: { "header:x": "1" }, reason: x, author: a, expires_at: "2999-01-01T00:00:00Z" }
`), 0o600); err != nil {
		t.Fatal(err)
	}
	d.wantOutput(0, `~ all policies: overrides [{"action":"block","author":"a","expires_at":"2999-01-01T00:00:00Z","id":"o","match":{"header:x":"1"},"reason":"x"}] (was NULL)`+"\n",
		"import", path)
	d.wantOutput(0, "overrides:", "export")
	d.wantOutput(0, "nothing changes", "import", path)
}

// A rule is rolled out by its mode alone.
func TestRules_Mode(t *testing.T) {
	d := newRulesDB(t)
	d.do(0, "set", "a", "--pattern", "ip:{ip}", "--rate", "1", "--burst", "5", "--mode", "off", "--spec", `{"deadline":"20ms"}`)
	for _, step := range []struct{ mode, want string }{
		{"shadow", "~ a: mode shadow (was off)\n"},
		{"2.5%", "~ a: mode 2.5% (was shadow)\n"},
		{"enforce", "~ a: mode NULL (was 2.5%)\n"},
	} {
		d.wantOutput(0, step.want, "set", "a", "--mode", step.mode)
	}
	d.wantOutput(0, "nothing changes", "set", "a", "--mode", "")
	d.wantOutput(0, "~ a: deadline NULL (was 20ms), group g (was NULL), policy other (was rules)\n", "set", "a", "--spec", `{"deadline":null,"group":"g"}`, "--policy", "other")
}

// checked returns the rules in the output of mete check.
func checked(t *testing.T, policy string) string {
	t.Helper()
	stdout, stderr, code := run(t, "check", "--format", "json", policy)
	var report struct{ Rules json.RawMessage }
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || code != 0 {
		t.Fatalf("mete check %s: code %d, %v\n%s%s", policy, code, err, stdout, stderr)
	}
	return string(report.Rules)
}

func TestRules_ImportSaysWhatChanges(t *testing.T) {
	d := newRulesDB(t)
	path := filepath.Join(t.TempDir(), "p.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("rules:\n  - { name: a, limit_keys: [\"ip:address\"], algorithm_config: { rps: 1, burst: 2 } }\n" +
		"  - { name: b, limit_keys: [], algorithm_config: { rps: 1, burst: 2 } }\n")
	d.wantOutput(0, "2 rules would change; nothing is written", "import", path, "--dry-run")
	d.wantOutput(0, "2 rules changed", "import", path)
	write("rules:\n  - { name: a, limit_keys: [\"ip:address\"], algorithm_config: { rps: 3, burst: 2 } }\n")
	d.wantOutput(0, "~ a: algorithm_config/rps 3 (was 1)\n~ b: is_active false (was true)\n2 rules changed\n", "import", "--replace", path)
	d.wantOutput(0, "1 rule is omitted: not active", "export")
	write("rules:\n  - { name: a, limit_keys: [\"ip:address\"], algorithm_config: { rps: 3, brust: 2 } }\n")
	d.wantOutput(1, `did you mean "burst"?`, "import", path)
}

func TestRules_Replay(t *testing.T) {
	d := newRulesDB(t)
	d.do(0, "set", "a", "--pattern", "ip:{ip}", "--rate", "0.001", "--burst", "1")
	trace := filepath.Join(t.TempDir(), "trace.jsonl")
	if err := os.WriteFile(trace, []byte(strings.Repeat(`{"at":1,"ip":"192.0.2.1"}`+"\n", 3)), 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, code := run(t, "replay", "--policy", d.url, "--format", "json", trace)
	if code != 0 || strings.Count(stdout, `"allowed":false`) != 2 {
		t.Errorf("mete replay: code %d, %q %q, want 2 of 3 denied", code, stdout, stderr)
	}
}

// All readers report broken rows.
func TestRules_BrokenRows(t *testing.T) {
	d := newRulesDB(t)
	d.do(0, "set", "a", "--pattern", "user:{user_id}", "--rate", "1", "--burst", "5")
	breakAttribute(t, d.url)
	const want = `rule 1 "a": spec/limit_keys/0: unknown attribute (got "nonsense:")`
	d.wantOutput(1, want, "list")
	d.wantOutput(1, want, "export")
	stdout, _, code := run(t, "check", d.url)
	if code != 1 || !strings.Contains(stdout, want) {
		t.Errorf("mete check: code %d, %q", code, stdout)
	}
	stdout, _, code = run(t, "check", "--format", "json", d.url)
	if code != 1 || !strings.Contains(stdout, `"rule_id":1,"rule":"a"`) {
		t.Errorf("mete check --format json: code %d, %q", code, stdout)
	}
	_, stderr, code := run(t, "serve", "--policy", d.url, "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0")
	if code != 1 || !strings.Contains(stderr, want) {
		t.Errorf("mete serve: code %d, %q", code, stderr)
	}
}

// breakAttribute makes an attribute in the table one that there is not.
func breakAttribute(t *testing.T, db string) {
	t.Helper()
	source, err := rules.Open(t.Context(), db, rules.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	execSQL(t, `UPDATE "`+source.Schema()+`".rate_limit_attribute SET attribute = 'nonsense:' WHERE name = 'user_id'`)
}

func TestRules_Usage(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"rules", "a command is required: list, set, enable, disable, delete, import or export"},
		{"rules lst --db postgres://h/d", `unknown command "lst"; did you mean 'mete rules list'?`},
		{"rules frobnicate --db postgres://h/d", `unknown command "frobnicate": it must be list, set`},
		{"rules list", "no --db given"},
		{"rules list --db mysql://h", "must begin with postgres://"},
		{"rules list --db postgres://h/d --rate 1", "unknown flag --rate"},
		{"rules list --db postgres://h/d --format xml", `invalid value "xml" for --format: must be text or json`},
		{"rules export --db postgres://h/d --format text", "must be yaml or json"},
		{"rules export --db postgres://h/d x", `unexpected argument "x"`},
		{"rules set --db postgres://h/d", "the name of a rule is required, or --pattern"},
		{"rules set a b --db postgres://h/d", "set changes one rule: unexpected argument \"b\""},
		{"rules disable --db postgres://h/d", "the name of a rule is required"},
		{"rules disable a b --if-version 1 --db postgres://h/d", "--if-version requires exactly one rule"},
		{"rules import --db postgres://h/d", "one policy file is required"},
		{"rules set a --priority 99999999999 --db postgres://h/d", "invalid value \"99999999999\" for --priority: value out of range"},
	} {
		stdout, stderr, code := run(t, strings.Fields(tt.args)...)
		if code != 2 || stdout != "" || !strings.Contains(stderr, tt.want) {
			t.Errorf("mete %s: code %d, %q, want 2 and %q", tt.args, code, stdout+stderr, tt.want)
		}
	}
	at := "postgres://u:secret@" + proctest.FreeAddr(t) + "/d"
	for _, args := range [][]string{{"rules", "list", "--db", at}, {"check", at}, {"replay", "--policy", at, "-"}} {
		stdout, stderr, code := run(t, args...)
		if code != 3 || strings.Contains(stdout+stderr, "secret") {
			t.Errorf("mete %q: code %d, %q, want 3 and no password", args, code, stdout+stderr)
		}
	}
}

// execSQL runs a statement in the database of the tests.
func execSQL(t *testing.T, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), proctest.PostgresURL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}
