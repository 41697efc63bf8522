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

	// DefaultTop is the default number of keys in /v1/top. MaxTop is the maximum.
	DefaultTop = 20
	MaxTop     = 1000
)

// Top configures /v1/top.
type Top struct {
	// Tracker counts the keys; the limiter's hooks feed it. If nil, /v1/top returns 404.
	Tracker *topkeys.Tracker

	// Now is the clock of the tracker. If nil, it is the wall clock.
	Now func() bucket.Instant

	// MaskKey is the key of the hashes that replace keys for callers that may not see them. Servers with the same
	// MaskKey show the same hashes. If empty, it is random.
	MaskKey []byte
}

func (t *Top) setDefaults() {
	if t.Now == nil {
		t.Now = func() bucket.Instant { return bucket.At(time.Now()) }
	}
	if len(t.MaskKey) == 0 {
		t.MaskKey = make([]byte, 32)
		_, _ = rand.Read(t.MaskKey) // never fails
	}
}

type topQuery struct {
	kind   topkeys.Kind
	rule   string // "" for all rules
	limit  int
	window time.Duration // 0 for the tracker's window
}

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
		Masked: a.roleOf(r) < RoleOperate, Rules: []api.TopRule{}, RuleCount: len(lists), Keys: []api.TopKey{},
	}
	rules := a.rules()
	var keys []rankedKey
	for i := range lists {
		l := &lists[i]
		answer.Total += l.Total
		answer.Dropped += l.Dropped
		if i < q.limit {
			answer.Rules = append(answer.Rules, api.TopRule{Rule: l.Rule, Total: l.Total, Dropped: l.Dropped, Keys: len(l.Keys), Unlisted: l.Unlisted})
		}
		for j := range l.Keys[:min(len(l.Keys), q.limit)] {
			keys = append(keys, rankedKey{l.Rule, rules[l.Rule], &l.Keys[j]})
		}
	}
	slices.SortStableFunc(keys, func(a, b rankedKey) int { return cmp.Compare(b.Count, a.Count) })
	for _, k := range keys[:min(len(keys), q.limit)] {
		answer.Keys = append(answer.Keys, a.topKey(k, now, answer.Masked))
	}
	return serveJSON(w, answer)
}

// A rankedKey is a key with its rule. The rule is nil if the policy no longer has it.
type rankedKey struct {
	name string
	rule *policy.Rule
	*topkeys.Key
}

func (a *API) topKey(k rankedKey, now bucket.Instant, masked bool) api.TopKey {
	key := policy.Key(k.Key.Key)
	shown := api.TopKey{
		Rule: k.name, Limit: toValidUTF8(key.Limit()), Key: k.Key.Key, Cut: k.Cut, Parts: topParts(key, k.rule), Count: k.Count, Error: k.Error,
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

func (a *API) topQuery(r *http.Request) (q topQuery, p *api.Problem) {
	query, p := parseQuery(r, "rule", "kind", "limit", "window")
	if p != nil {
		return q, p
	}
	var err error
	if text := query.Get("kind"); text != "" {
		if q.kind, err = topkeys.ParseKind(text); err != nil {
			return q, api.NewProblem(http.StatusBadRequest, fmt.Sprintf("kind %.40q: must be denied, shadow or near", text))
		}
	}
	q.limit = DefaultTop
	if text := query.Get("limit"); text != "" {
		if q.limit, err = strconv.Atoi(text); err != nil || q.limit < 1 || q.limit > MaxTop {
			return q, api.NewProblem(http.StatusBadRequest, fmt.Sprintf("limit is the number of keys; send a number between 1 and %d", MaxTop))
		}
	}
	if text := query.Get("window"); text != "" {
		most := a.top.Tracker.Window()
		if q.window, err = bucket.ParseDuration(text); err != nil || q.window <= 0 || q.window > most {
			return q, api.NewProblem(http.StatusBadRequest, fmt.Sprintf("window is the time range; send a duration above 0 and up to %v, such as %v", most, most))
		}
	}
	if q.rule = query.Get("rule"); q.rule != "" {
		if rules := a.rules(); rules[q.rule] == nil {
			return q, api.NewProblem(http.StatusNotFound, noRule(q.rule, slices.Collect(maps.Keys(rules))))
		}
	}
	return q, nil
}

func (a *API) rules() map[string]*policy.Rule {
	rules := map[string]*policy.Rule{}
	if m := a.lim.Policy(); m != nil {
		for _, r := range m.Rules() {
			rules[r.Name] = r
		}
	}
	return rules
}

func noRule(name string, known []string) string {
	text := fmt.Sprintf("no rule is named %.80q", name)
	if near := spell.Nearest(name, known); near != "" {
		text += fmt.Sprintf("; did you mean %q?", near)
	}
	return text
}
