// SPDX-License-Identifier: Apache-2.0

package policyyaml_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
)

// The dashboard shows every rule of every policy that people are given to copy, and for
// each a request that falls under it.
func TestExamples_OnTheDashboard(t *testing.T) {
	var files []string
	for _, pattern := range []string{"policies/*.yaml", "cookbook/*.yaml", "quickstart.yaml", "replay/*.yaml", "gateways/policy.yaml"} {
		found, err := filepath.Glob(filepath.Join("../examples", pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v, %v", pattern, found, err)
		}
		files = append(files, found...)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			m, err := loadFile(file, policy.Options{HashKey: []byte("test")})
			if err != nil {
				t.Fatal(err)
			}
			shown := shownRules(t, m)
			for i, r := range m.Rules() {
				got, ok := shown[r.Name]
				if !ok || len(got.Limits) != len(r.Limits) || got.Place != i+1 {
					t.Errorf("rule %s is shown as %+v", r.Name, got)
				}
				if r.Mode == policy.ModeOff {
					continue
				}
				if !fallsUnder(m, r, got.Example) {
					t.Errorf("the example of rule %s, %v, does not fall under it", r.Name, got.Example)
				}
			}
			if len(shown) != len(m.Rules()) {
				t.Errorf("%d rules are shown of %d", len(shown), len(m.Rules()))
			}
		})
	}
}

// fallsUnder reports whether a request falls under r. If r has active hours, it may do so at any hour of a week.
func fallsUnder(m *policy.Matcher, r *policy.Rule, request policy.Map) bool {
	hours := 1
	if slices.ContainsFunc(r.Facts(), func(f policy.Fact) bool { return f.Field == "active" }) {
		hours = 7 * 24
	}
	for hour := range hours {
		matches, verdict := m.Match(nil, request, 0, bucket.Instant(0).Add(time.Duration(hour)*time.Hour))
		if verdict.Block != nil || verdict.Allow != nil || verdict.Missing == r ||
			slices.ContainsFunc(matches, func(match policy.Match) bool { return match.Rule == r }) {
			return true
		}
	}
	return false
}

// A shownRule has the fields of a rule that a test compares.
type shownRule struct {
	Name    string     `json:"name"`
	Place   int        `json:"place"`
	Example policy.Map `json:"example"`
	Limits  []any      `json:"limits"`
}

// shownRules returns the rules of the API response by name.
func shownRules(t *testing.T, m *policy.Matcher) map[string]shownRule {
	t.Helper()
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	lim, err := mete.New(store, m, mete.Config{Local: store})
	if err != nil {
		t.Fatal(err)
	}
	admin, err := httpapi.New(lim, httpapi.Config{Admin: true})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	admin.ServeHTTP(w, httptest.NewRequest("GET", "/v1/rules", nil))
	var tree struct {
		Policies []struct {
			Groups []struct {
				Rules []shownRule `json:"rules"`
			} `json:"groups"`
		} `json:"policies"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &tree); err != nil || w.Code != http.StatusOK {
		t.Fatalf("/v1/rules: %d %s: %v", w.Code, w.Body, err)
	}
	rules := map[string]shownRule{}
	for _, p := range tree.Policies {
		for _, g := range p.Groups {
			for _, r := range g.Rules {
				rules[r.Name] = r
			}
		}
	}
	return rules
}
