// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/internal/parse"
	"github.com/metehq/mete/internal/testseed"
)

// The index finds every earlier rule that matters: the reports are the same as without an index.
func TestUnreachable_AsEachWithEach(t *testing.T) {
	const seed = 3
	rnd := rand.New(testseed.PCG(seed, 0))
	found := 0
	for round := range 300 {
		var rules []string
		for i := range 2 + rnd.IntN(60) {
			rules = append(rules, randomTier(rnd, i))
		}
		text := `{"rules": [` + strings.Join(rules, ",\n") + `]}`
		read := func(check func(*compiler)) []parse.Error {
			c := newCompiler(&Matcher{}, time.Now())
			c.readFile(c.Parse([]byte(text), MaxFileBytes))
			c.Report = &parse.Report{} // without the rules that contradict themselves
			check(c)
			return c.Errors()
		}
		got, want := read((*compiler).reportUnreachable), read(eachWithEach)
		found += len(want)
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d, round %d: %s\nfound\n%v\nwant\n%v", seed, round, text, got, want)
		}
	}
	if found < 500 {
		t.Errorf("%d rules that can never match: the test says little", found)
	}
}

// eachWithEach is [compiler.reportUnreachable] without an index, for one group.
func eachWithEach(c *compiler) {
	var tiers []*claim
	for _, d := range c.drafts {
		if d.group == "" {
			continue
		}
		var earlier iter.Seq[*claim] = func(yield func(*claim) bool) {
			for _, e := range tiers {
				if takesAll(e.keyMode(), d.keyMode()) && !yield(e) {
					return
				}
			}
		}
		var by []*claim
		covered := true
		for _, b := range d.takes {
			cover := c.findCover(b, earlier)
			if cover == nil {
				cover = c.findJointCover(b, earlier)
			}
			if covered = cover != nil; !covered {
				break
			}
			by = append(by, cover...)
		}
		if !covered {
			for _, b := range d.takes {
				tiers = append(tiers, &claim{draft: d, box: b})
			}
			continue
		}
		c.AddAt(d.at, c.describeCover(d, by), "move it before the other rule, narrow the other rule's match, or give it its own group so that both apply")
	}
}

func randomTier(rnd *rand.Rand, i int) string {
	match := randomAlternative(rnd)
	if rnd.IntN(4) == 0 {
		match = "[" + match + ", " + randomAlternative(rnd) + "]"
	}
	return fmt.Sprintf(`{"name": "r%d", "group": "g", "limit_keys": %s, "mode": %q, "match": %s, "algorithm_config": {"rps": 1, "burst": 1}}`,
		i, []string{`[]`, `["header:a"]`, `["ip:address"]`}[rnd.IntN(3)], []string{"enforce", "enforce", "50%", "shadow"}[rnd.IntN(4)], match)
}

func randomAlternative(rnd *rand.Rand) string {
	texts := []string{`"/a"`, `"/b"`, `"/a/*"`, `"/a/b*"`, `"/*"`, `["/a", "/b"]`, `["/a/*", "/c"]`, `{"not": "/a"}`, `{"not": ["/a/*", "/b"]}`, `"*"`, `{"not": "*"}`}
	nets := []string{`"10.0.0.0/8"`, `"10.1.0.0/16"`, `"10.1.2.3"`, `["192.0.2.0/24", "2001:db8::/32"]`, `{"not": "10.0.0.0/8"}`}
	paths := append(texts[:len(texts):len(texts)], `"/{x}"`, `"/a/{x}"`, `"/{x}/b"`, `["/a/{r...}", "/{y}/c"]`, `{"not": "/a/{x}"}`, `{"not": ["/{x}", "/b*"]}`)
	var clauses []string
	if rnd.IntN(2) == 0 {
		clauses = append(clauses, `"path": `+paths[rnd.IntN(len(paths))])
	}
	for _, name := range []string{"header:a", "header:b"} {
		if rnd.IntN(2) == 0 {
			clauses = append(clauses, fmt.Sprintf("%q: %s", name, texts[rnd.IntN(len(texts))]))
		}
	}
	if rnd.IntN(3) == 0 {
		hosts := []string{`"a.b"`, `"*.b"`, `"*.a.b"`, `["*.c", "a*"]`, `{"not": "*.b"}`, `{"not": ["*.a.b", "c"]}`}
		clauses = append(clauses, `"host": `+hosts[rnd.IntN(len(hosts))])
	}
	if rnd.IntN(3) == 0 {
		clauses = append(clauses, `"ip:address": `+nets[rnd.IntN(len(nets))])
	}
	if rnd.IntN(2) == 0 { // most of them differ
		clauses = append(clauses, fmt.Sprintf(`"jwt:n": ["%d", "%d*"]`, rnd.IntN(40), rnd.IntN(40)))
	}
	return "{" + strings.Join(clauses, ", ") + "}"
}
