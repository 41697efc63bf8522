// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/pgstore/rules"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policytest"
)

// edit makes a change that succeeds.
func (d *database) edit(change func(*rules.Set) error) []rules.Change {
	d.t.Helper()
	changes, err := d.Edit(d.t.Context(), false, change)
	if err != nil {
		d.t.Fatal(err)
	}
	return changes
}

// summary lists the changes: +added ~changed −gone.
func summary(changes []rules.Change) string {
	var words []string
	for _, c := range changes {
		switch {
		case c.Policy != nil:
			words = append(words, "policy:"+*c.Policy)
		case c.Before == nil:
			words = append(words, "+"+c.After.Name)
		case c.After == nil:
			words = append(words, "-"+c.Before.Name)
		default:
			words = append(words, "~"+c.After.Name)
		}
	}
	return strings.Join(words, " ")
}

func TestEdit_WritesWhatChanged(t *testing.T) {
	d := newDatabase(t)
	d.source()
	got := d.edit(func(s *rules.Set) error {
		s.Rules[1].RatePerSecond, s.Rules[1].Description = "100.5", "more"
		s.Rules[0].RatePerSecond = "10.00" // the same
		s.Rules[0].Spec = []byte(strings.ReplaceAll(string(s.Rules[0].Spec), " ", "\n"))
		s.Rules = append(s.Rules[:3], rules.Rule{KeyPattern: "ip:{ip}", RatePerSecond: "1", BurstCapacity: "5", Active: true})
		return nil
	})
	if want := "-global ~user-pro +ip"; summary(got) != want {
		t.Errorf("changes %s, want %s", summary(got), want)
	}
	rows := d.rows().Rules
	if len(rows) != 4 || rows[1].RatePerSecond != "100.5" || rows[1].Version != 2 || rows[0].Version != 1 || rows[3].Scope != "ip" {
		t.Errorf("rows %+v", rows)
	}
	if got, want := strings.Join(d.query(`SELECT spec FROM {schema}.rate_limit_rule WHERE name = 'user-pro'`), ""),
		`{"name": "user-pro", "match": {"jwt:plan": "pro"}, "limit_keys": ["jwt:sub"], "description": "more", "algorithm_config": {"rps": 100.5, "burst": 500}}`; got != want {
		t.Errorf("spec %s, want %s", got, want)
	}
	revision := d.rows().Revision
	if got := d.edit(func(s *rules.Set) error { s.Rules[0].RatePerSecond = "10.0"; return nil }); len(got) != 0 || d.rows().Revision != revision {
		t.Errorf("an edit of nothing changes %s, and the revision from %d to %d", summary(got), revision, d.rows().Revision)
	}
	got = d.edit(func(s *rules.Set) error {
		s.Policies["rules"] = []byte(`{"mode": "shadow"}`)
		return nil
	})
	if len(got) != 1 || got[0].Policy == nil || *got[0].Policy != "rules" || string(got[0].After.Spec) != `{"mode": "shadow"}` || got[0].Before != nil {
		t.Errorf("an edit of a policy changes %+v", got)
	}
	if m := d.load(); m.Rules()[0].Mode != policy.ModeShadow {
		t.Errorf("the mode of the policy is not that of its rules: %v", m.Rules()[0].Mode)
	}
}

// TestEdit_WritesAllOrNothing proves that a failed edit and a dry run write nothing.
func TestEdit_WritesAllOrNothing(t *testing.T) {
	d := newDatabase(t)
	d.source()
	before := rowsText(d.rows())
	no := errors.New("no")
	for name, tt := range map[string]struct {
		edit func(*rules.Set) error
		want string
	}{
		"the edit says no": {func(s *rules.Set) error { s.Rules = nil; return no }, "no"},
		"broken": {func(s *rules.Set) error {
			s.Rules[0].Spec = []byte(`{"name":"user-free","limit_keys":[],"mode":"101%","algorithm_config":{"rps":1,"burst":1}}`)
			s.Rules[1].Plan = "x"
			return nil
		}, `rule 1 "user-free": spec/mode`},
		"refused": {func(s *rules.Set) error { s.Rules[0].RatePerSecond = "-1"; return nil },
			`rule 1 "user-free": rate_per_second: must be a number above 0 and at most 9007199254740.991 (got -1)`},
		"no number": {func(s *rules.Set) error { s.Rules[0].RatePerSecond = "many"; return nil }, `rule 1 "user-free": rate_per_second: must be a number above 0`},
		"NaN":       {func(s *rules.Set) error { s.Rules[0].RatePerSecond = "NaN"; return nil }, `rate_per_second: must be`},
		"a copy": {func(s *rules.Set) error {
			s.Rules = append(s.Rules, rules.Rule{Name: "x", KeyPattern: "global", RatePerSecond: "1", BurstCapacity: "1", Active: true})
			return nil
		}, `rule "x": key_pattern: another active rule has this key_pattern and plan`},
		"too long": {func(s *rules.Set) error { s.Rules[0].KeyPattern = "ip:" + strings.Repeat("x", 200); return nil }, `rule 1 "user-free": key_pattern: must be a valid pattern of at most 128 characters`},
		"no rule":  {func(s *rules.Set) error { s.Rules = nil; return nil }, "no active rule"},
	} {
		if _, err := d.Edit(t.Context(), false, tt.edit); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
		if got := rowsText(d.rows()); got != before {
			t.Fatalf("%s: the rows are%s\nwant%s", name, got, before)
		}
	}
	changes, err := d.Edit(t.Context(), true, func(s *rules.Set) error { s.Rules = s.Rules[:1]; return nil })
	if err != nil || summary(changes) != "-user-pro -endpoint:/api/search -global" || rowsText(d.rows()) != before {
		t.Errorf("dry run: %s, %v; rows%s", summary(changes), err, rowsText(d.rows()))
	}
}

// TestEdit_OneAfterTheOther proves that concurrent edits are serialized, and each sees the previous ones.
func TestEdit_OneAfterTheOther(t *testing.T) {
	d := newDatabase(t)
	d.source()
	const writers, times = 4, 5
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for range times {
				if _, err := d.Edit(t.Context(), false, func(s *rules.Set) error {
					var burst int
					fmt.Sscan(s.Rules[3].BurstCapacity, &burst)
					s.Rules[3].BurstCapacity = fmt.Sprint(burst + 1)
					return nil
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if got := d.rows().Rules[3]; got.BurstCapacity != "100020" || got.Version != 1+writers*times {
		t.Errorf("burst %s at version %d, want 100020 at %d", got.BurstCapacity, got.Version, 1+writers*times)
	}
}

// TestImport_IntoTheDatabase imports and exports every file of the corpus, and random ones.
func TestImport_IntoTheDatabase(t *testing.T) {
	d := newDatabase(t)
	files := corpus(t)
	rng := rand.New(testseed.PCG(7, 8))
	for i := range 60 {
		files[fmt.Sprintf("random %d", i)] = randomPolicy(rng)
	}
	for name, data := range files {
		m, err := policytest.Load(data, options)
		if err != nil {
			continue
		}
		changes := d.edit(func(s *rules.Set) error { s.Rules = nil; return s.Import(data, true) })
		if len(changes) == 0 {
			t.Errorf("%s: nothing changes", name)
		}
		added := strings.Count(" "+summary(changes), " +")
		listed := slices.DeleteFunc(slices.Clone(m.Rules()), (*policy.Rule).IsGuard) // guards have no rows
		if added != len(listed) {
			t.Errorf("%s: %d rows are new, want %d", name, added, len(listed))
		}
		values := valuesOf(data)
		sameDecisions(t, name+", from the database", m, d.load(), values)
		file := d.rows().Export()
		sameDecisions(t, name+", exported", m, load(t, file), values)
		if changes := d.edit(func(s *rules.Set) error { return s.Import(file, true) }); len(changes) != 0 {
			t.Errorf("%s: importing the export changes %s", name, summary(changes))
		}
		changes = d.edit(func(s *rules.Set) error { s.Rules = nil; return s.Import(file, true) })
		if len(changes) == 0 {
			t.Errorf("%s: the import of the export into no rows changes nothing", name)
		}
		sameDecisions(t, name+", exported, from the database", m, d.load(), values)
	}
}

// TestImport_KeepsRows imports an export. Rows stay unchanged: their words, numbers and inactive rules.
func TestImport_KeepsRows(t *testing.T) {
	d := newDatabase(t)
	d.source()
	d.must(`INSERT INTO {schema}.rate_limit_rule (name, key_pattern, scope, rate_per_second, burst_capacity, priority, is_active, spec) VALUES
		('words', 'customer:{user_id}:shop:{header:X-Shop}', 'custom', 1.50, 20.0, 7, true, '{"mode": "enforce", "on_missing": "deny"}'),
		('user 42', 'user:42', 'user', 1, 1, -3, true, '{}'),
		('custom', 'custom', 'custom', NULL, NULL, 0, true,
			'{"limit_keys": ["header:X-A"], "algorithm": "token_bucket", "algorithm_config": {"tokens_per_second": 5.0, "burst": 10}}'),
		('off', 'ip:{ip}', 'ip', 1, 1, 0, false, '{}'),
		('path', 'path:/x:method:GET', 'custom', 1, 1, 0, true, '{"group": "words"}')`)
	before := rowsText(d.rows())
	if changes := d.edit(func(s *rules.Set) error { return s.Import(s.Export(), true) }); len(changes) != 0 {
		t.Errorf("importing the export changes %s; rows\n%s\nwere\n%s", summary(changes), rowsText(d.rows()), before)
	}
}

func TestImport_ChangesByName(t *testing.T) {
	d := newDatabase(t)
	d.source()
	d.must(`UPDATE {schema}.rate_limit_rule SET is_active = false WHERE name = 'user-free'`)
	file := []byte(`{"rules": [
		{"name": "global", "limit_keys": [], "algorithm_config": {"rps": 50000, "burst": 90000}},
		{"name": "user-free", "limit_keys": ["jwt:sub"], "match": {"jwt:plan": "free"}, "algorithm_config": {"rps": 10, "burst": 50}},
		{"name": "new", "limit_keys": ["ip:address"], "algorithm_config": {"rps": 1, "burst": 5}}]}`)
	if got := summary(d.edit(func(s *rules.Set) error { return s.Import(file, false) })); got != "~user-free ~global +new" && got != "~global ~user-free +new" {
		t.Errorf("changes %s, want user-free active again, global changed, new added", got)
	}
	var order []string
	for _, r := range d.load().Rules() {
		order = append(order, r.Name)
	}
	if got := strings.Join(order, " "); !strings.HasSuffix(got, "global user-free new") {
		t.Errorf("the rules are in the order %s, want those of the file in its order", got)
	}
	if got := summary(d.edit(func(s *rules.Set) error { return s.Import(file, true) })); got != "~user-pro ~endpoint:/api/search" {
		t.Errorf("with replace: changes %s, want the two that are not in the file", got)
	}
	if got := len(d.load().Rules()); got != 3 {
		t.Errorf("with replace: %d rules are active, want the 3 of the file", got)
	}
	if got := len(d.rows().Rules); got != 5 {
		t.Errorf("with replace: %d rows, want 5: none is deleted", got)
	}
}

// TestImport_RenamedRules renames a rule, and swaps two rules, without conflicts.
func TestImport_RenamedRules(t *testing.T) {
	d := newDatabase(t)
	rule := `{"name": %q, "limit_keys": ["ip:address"], "algorithm_config": {"rps": %d, "burst": 5}}`
	for i, name := range []string{"a", "b", "a"} {
		file := fmt.Appendf(nil, rule, name, i+1)
		d.edit(func(s *rules.Set) error { return s.Import(file, true) })
		if got := d.load().Rules(); len(got) != 1 || got[0].Name != name {
			t.Errorf("rules %v, want %s alone", got, name)
		}
	}
}

// TestImport_RowBecomesTier imports a row as a tier, and as a separate rule again.
func TestImport_RowBecomesTier(t *testing.T) {
	d := newDatabase(t)
	rule := `{"name": %q, "limit_keys": ["ip:address"], "match": %s, "algorithm_config": {"rps": 1, "burst": 5}}`
	one := fmt.Appendf(nil, `{"rules": [`+rule+`]}`, "a", `{"path": "/a"}`)
	both := fmt.Appendf(nil, `{"rules": [`+rule+`, `+rule+`]}`, "a", `{"path": "/a"}`, "b", `{}`)
	request := policy.Map{"ip:address": "192.0.2.1", "path": "/a"}
	for i, file := range [][]byte{one, both, one, both} {
		d.edit(func(s *rules.Set) error { return s.Import(file, true) })
		if got, want := falls(d.load(), request), "a:ip=192.0.2.1"; got != want {
			t.Errorf("after import %d, a request falls under %q, want %q: a and b are tiers", i, got, want)
		}
	}
	d.must(`UPDATE {schema}.rate_limit_rule SET spec = spec - 'group'`)
	d.edit(func(s *rules.Set) error { return s.Import(both, false) })
	if got, want := falls(d.load(), request), "a:ip=192.0.2.1"; got != want {
		t.Errorf("after the import of tiers over rows by themselves, a request falls under %q, want %q", got, want)
	}
}

func TestImport_Refuses(t *testing.T) {
	s := &rules.Set{}
	if err := s.Import([]byte(`{"rules": [{"name": "a"}]}`), false); err == nil {
		t.Error("a broken file: no error")
	}
	nul := `{"name": "a", "limit_keys": [], "match": {"header:x": "\u0000"}, "algorithm_config": {"rps": 1, "burst": 1}}`
	if err := s.Import([]byte(nul), false); err == nil || !strings.Contains(err.Error(), "zero character") {
		t.Errorf("a zero character: %v", err)
	}
	if err := s.Import([]byte(strings.ReplaceAll(nul, `\u0000`, `\\u0000`)), false); err != nil {
		t.Errorf("what looks like one: %v", err)
	}
}

// TestEdit_RefusalsNameTheColumn proves that each rejection names a column.
func TestEdit_RefusalsNameTheColumn(t *testing.T) {
	d := newDatabase(t)
	for _, spec := range []string{`[]`, `{"rules": []}`, `{"policies": []}`, `{"bundle_version": 7}`} {
		_, err := d.Edit(t.Context(), false, func(s *rules.Set) error { s.Policies["p"] = []byte(spec); return nil })
		if err == nil || !strings.HasPrefix(err.Error(), `policy "p": spec: must be a JSON object without rules`) {
			t.Errorf("a policy with the document %s: %v", spec, err)
		}
	}
	sound := rules.Rule{Name: "x", KeyPattern: "ip:{ip}", RatePerSecond: "1", BurstCapacity: "1", Active: true}
	for _, test := range []struct {
		change func(*rules.Rule)
		want   string
	}{
		{func(r *rules.Rule) { r.KeyPattern = strings.Repeat("a", 120) + ":{header:x-user}" }, `rule "x": key_pattern: must be a valid pattern of at most 128 characters`},
		{func(r *rules.Rule) { r.Plan = strings.Repeat("a", 33) }, `rule "x": plan: must be 1 to 32 characters`},
		{func(r *rules.Rule) { r.Scope = strings.Repeat("a", 33) }, `rule "x": scope: must be the label in key_pattern (user, endpoint or ip)`},
		{func(r *rules.Rule) { r.RatePerSecond = "abc" }, `rule "x": rate_per_second: must be a number above 0`},
		{func(r *rules.Rule) { r.BurstCapacity = "1e999999" }, `rule "x": burst_capacity: must be a number from 1`},
		{func(r *rules.Rule) { r.BurstCapacity = "" }, `rule "x": burst_capacity: is required with rate_per_second`},
		{func(r *rules.Rule) { r.RatePerSecond = "" }, `rule "x": rate_per_second: is required with burst_capacity`},
		{func(r *rules.Rule) { r.Spec = []byte(`{"group": "a\u0000"}`) }, `rule "x": spec: must not contain a zero`},
		{func(r *rules.Rule) { r.KeyPattern = "user:{user_di}" }, `rule "x": key_pattern: "user_di" is not a known attribute (got "user:{user_di}"); did you mean "user_id"?`},
		{func(r *rules.Rule) { r.KeyPattern = "{headr:x}" }, `rule "x": key_pattern: "headr:x" is not a known attribute (got "{headr:x}")`},
		{func(r *rules.Rule) { r.KeyPattern = "{shop:x}" }, `rule "x": key_pattern: "shop:x" is not a known attribute`},
		{func(r *rules.Rule) { r.KeyPattern = "shelf:5:{ip}" }, `rule "x": key_pattern: "shelf" is not a known attribute`},
		{func(r *rules.Rule) { r.KeyPattern = "{shelf}" }, `rule "x": key_pattern: "shelf" is not a known attribute (got "{shelf}"); insert it into rate_limit_attribute, or use`},
		{func(r *rules.Rule) { r.Spec = []byte(`{"algorithm_config": {"rps": 2}}`) }, `rule "x": spec: spec and another column have different values`},
		{func(r *rules.Rule) { r.Spec = []byte(`{"limits": []}`) }, `rule "x": spec: rate_per_second and burst_capacity require a token_bucket, but spec has a different`},
		{func(r *rules.Rule) { r.KeyPattern = "" }, `rule "x": spec: limit_keys is missing; set key_pattern`},
	} {
		r := sound
		test.change(&r)
		_, err := d.Edit(t.Context(), false, func(s *rules.Set) error {
			s.Rules = append(s.Rules, r)
			return nil
		})
		if _, broken := errors.AsType[rules.Errors](err); !broken || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%+v: %v, want %s", r, err, test.want)
		}
	}
}
