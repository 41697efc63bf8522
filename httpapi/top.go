// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/spell"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/topkeys"
)

const (
	topPath = "/v1/top"

	// DefaultTop is how many keys /v1/top shows where nobody asks for more, or for
	// fewer, and MaxTop the most that it does.
	DefaultTop = 20
	MaxTop     = 1000
)

// Top is what /v1/top is answered from.
type Top struct {
	// Tracker is told by the limiter's hooks. Nil: /v1/top answers 404.
	Tracker *topkeys.Tracker

	// Now is the clock that the tracker is told the time by. Nil is the wall clock.
	Now func() bucket.Instant

	// MaskKey keys the hashes that stand for keys where who asks may not see them, so
	// that several servers show the same ones. Empty is a random one.
	MaskKey []byte
}

// complete fills in defaults.
func (t *Top) complete() {
	if t.Now == nil {
		t.Now = func() bucket.Instant { return bucket.At(time.Now()) }
	}
	if len(t.MaskKey) == 0 {
		t.MaskKey = make([]byte, 32)
		_, _ = rand.Read(t.MaskKey) // never fails
	}
}

// A topQuery is what is asked for.
type topQuery struct {
	kind   topkeys.Kind
	rule   string // "" for all
	limit  int
	window time.Duration // 0 for the tracker's
}

// serveTop serves /v1/top.
func (a *API) serveTop(w http.ResponseWriter, r *http.Request) *api.Problem {
	q, p := a.topQuery(r)
	if p != nil {
		return p
	}
	now := a.top.Now()
	var lists []topkeys.List
	if q.rule == "" {
		lists = a.top.Tracker.All(now, q.kind, q.window)
	} else {
		lists = append(lists, a.top.Tracker.Top(now, q.rule, q.kind, q.window))
	}
	answer := api.Top{
		Kind: q.kind.String(), At: now.Time(), Since: a.top.Tracker.Since(now, q.window).Time(), Counters: a.top.Tracker.Counters(),
		Masked: a.roleOf(r) < Operate, Rules: []api.TopRule{}, RuleCount: len(lists), Keys: []api.TopKey{},
	}
	rules := a.rules()
	var keys []foundKey
	for i := range lists {
		l := &lists[i]
		answer.Total += l.Total
		answer.Dropped += l.Dropped
		if i < q.limit {
			answer.Rules = append(answer.Rules, api.TopRule{Rule: l.Rule, Total: l.Total, Dropped: l.Dropped, Keys: len(l.Keys), Unlisted: l.Unlisted})
		}
		for j := range l.Keys[:min(len(l.Keys), q.limit)] {
			keys = append(keys, foundKey{l.Rule, rules[l.Rule], &l.Keys[j]})
		}
	}
	slices.SortStableFunc(keys, func(a, b foundKey) int { return cmp.Compare(b.Count, a.Count) })
	for _, k := range keys[:min(len(keys), q.limit)] {
		answer.Keys = append(answer.Keys, a.topKey(k, now, answer.Masked))
	}
	return serveJSON(w, answer)
}

// A foundKey is a key and the rule that it is of, nil for none of the policy's.
type foundKey struct {
	name string
	rule *policy.Rule
	*topkeys.Key
}

// topKey is k as it is shown, or what can be shown of it.
func (a *API) topKey(k foundKey, now bucket.Instant, masked bool) api.TopKey {
	key := policy.Key(k.Key.Key)
	shown := api.TopKey{
		Rule: k.name, Limit: printable(key.Limit()), Key: k.Key.Key, Cut: k.Cut, Parts: topParts(key, k.rule), Count: k.Count, Error: k.Error,
		First: k.First.Time(), Last: k.Last.Time(), RetryAfter: topWait(k.Key, now),
	}
	if !masked {
		return shown
	}
	mask := key.Mask(a.top.MaskKey)
	_, shown.Mask, _ = mask.CutMask()
	shown.Key = string(mask)
	maskParts(shown.Parts)
	return shown
}

// topWait is how much is left of the wait that the last denial has told.
func topWait(k *topkeys.Key, now bucket.Instant) api.Seconds {
	const never = bucket.Instant(bucket.Never / time.Microsecond)
	switch {
	case k.Retry-k.Last >= never:
		return api.Seconds(bucket.Never)
	case k.Retry <= now:
		return 0
	}
	return api.Seconds(time.Duration(k.Retry-now) * time.Microsecond)
}

// topQuery reads what is asked for.
func (a *API) topQuery(r *http.Request) (q topQuery, p *api.Problem) {
	query, p := parameters(r, "rule", "kind", "limit", "window")
	if p != nil {
		return q, p
	}
	var err error
	if text := query.Get("kind"); text != "" {
		if q.kind, err = topkeys.ParseKind(text); err != nil {
			return q, api.NewProblem(http.StatusBadRequest, fmt.Sprintf("kind %.40q is none of denied, shadow and near", text))
		}
	}
	q.limit = DefaultTop
	if text := query.Get("limit"); text != "" {
		if q.limit, err = strconv.Atoi(text); err != nil || q.limit < 1 || q.limit > MaxTop {
			return q, api.NewProblem(http.StatusBadRequest, fmt.Sprintf("limit says how many keys are wanted; send a number between 1 and %d", MaxTop))
		}
	}
	if text := query.Get("window"); text != "" {
		most := a.top.Tracker.Window()
		if q.window, err = bucket.ParseDuration(text); err != nil || q.window <= 0 || q.window > most {
			return q, api.NewProblem(http.StatusBadRequest, fmt.Sprintf("window says how much time the answer is about; send a duration above 0 and up to %v, such as %v", most, most))
		}
	}
	if q.rule = query.Get("rule"); q.rule != "" {
		if rules := a.rules(); rules[q.rule] == nil {
			return q, api.NewProblem(http.StatusNotFound, noRule(q.rule, slices.Collect(maps.Keys(rules))))
		}
	}
	return q, nil
}

// rules are those of the policy in force, by their names.
func (a *API) rules() map[string]*policy.Rule {
	rules := map[string]*policy.Rule{}
	if m := a.lim.Policy(); m != nil {
		for _, r := range m.Rules() {
			rules[r.Name] = r
		}
	}
	return rules
}

// noRule says that there is no rule of that name, and which one may be meant.
func noRule(name string, known []string) string {
	text := fmt.Sprintf("no rule has the name %.80q", name)
	if near := spell.Nearest(name, known); near != "" {
		text += fmt.Sprintf("; did you mean %q?", near)
	}
	return text
}
