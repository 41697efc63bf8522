// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
)

// explain serves /v1/explain. The answer to a denied request is 200, too: the
// question was what would become of it.
func (a *API) explain(w http.ResponseWriter, r *http.Request) *Problem {
	if p := a.checkSender(w, r); p != nil {
		return p
	}
	buf := buffers.Get().(*buffer)
	defer buf.release()
	if p := buf.readBody(w, r); p != nil {
		return p
	}
	reqs, batch, p := buf.decoder.decode(buf.in, a.longest)
	switch {
	case p != nil:
		return p
	case batch:
		p := problem(http.StatusBadRequest, "one request is explained at a time; send it without \"requests\"")
		p.Pointer = "/requests"
		return p
	}
	e, err := a.lim.Explain(r.Context(), reqs[0])
	if err != nil {
		return errorProblem(err)
	}
	x := Explain(&e)
	x.Decision.UnknownAttributes = a.unknown(&reqs[0])
	if a.roleOf(r) < Operate {
		x.mask()
	}
	text, err := json.Marshal(x)
	if err != nil {
		return problem(http.StatusInternalServerError, "the explanation cannot be written as JSON")
	}
	buf.out = append(buf.out, text...)
	buf.serve(w, http.StatusOK)
	return nil
}

// Explain returns e as /v1/explain answers it, in words. Limits that the request
// brought itself are left out of its rules.
func Explain(e *mete.Explanation) Explanation {
	x := Explanation{
		At: e.At.Time(), Why: verdict(e), Decision: decisionOf(&e.Decision), Override: e.Decision.Override, ShadowedBy: e.Calm, Rules: []ExplainedRule{},
		PassesAt: passesAt(e.At, &e.Decision),
	}
	if e.Policy != nil {
		x.PolicyVersion = e.Policy.Version()
	}
	for i := range e.Rules {
		x.Rules = append(x.Rules, explainRule(e, &e.Rules[i]))
	}
	return x
}

// passesAt is when a request passes, nil for never. A store that does not answer
// does not say when it will.
func passesAt(at bucket.Instant, d *mete.Decision) *time.Time {
	if d.Reason == mete.ReasonStoreError {
		return nil
	}
	return later(at, d.RetryAfter)
}

func later(at bucket.Instant, wait time.Duration) *time.Time {
	if wait == bucket.Never {
		return nil
	}
	t := at.Add(wait).Time()
	return &t
}

// decisionOf is d as a take is answered, by what writes that.
func decisionOf(d *mete.Decision) (decision Decision) {
	_ = json.Unmarshal(appendDecision(nil, d), &decision) // a test holds that it is read
	return decision
}

func explainRule(e *mete.Explanation, r *mete.Considered) ExplainedRule {
	x := ExplainedRule{
		Name: r.Rule.Name, Mode: r.Rule.Mode.String(), LimitKeys: []string{}, Outcome: r.Outcome.String(), Why: why(e, r), Shadow: r.Shadow,
		Attribute: r.Attribute.String(), Wants: r.Wants, Override: r.Override, Limits: []ExplainedLimit{},
	}
	for _, a := range r.Rule.LimitKeys {
		x.LimitKeys = append(x.LimitKeys, a.Spelled())
	}
	if r.Present {
		x.Has = &r.Value
	}
	if r.By != nil {
		x.By = r.By.Name
	}
	for i := range r.Accounts {
		x.Limits = append(x.Limits, explainLimit(e, &r.Accounts[i]))
	}
	return x
}

func explainLimit(e *mete.Explanation, a *mete.Account) ExplainedLimit {
	x := ExplainedLimit{
		Name: a.Limit.Name, Key: a.Key, Algorithm: strings.TrimSuffix(a.Limit.Reason, "_exceeded"), Cost: amount(a.Cost), Capacity: amount(room(&a.Status)), Asked: a.Asked,
	}
	if !a.Asked {
		return x
	}
	x.Allowed, x.RetryAfter, x.FullAfter = a.Allowed, Seconds(a.RetryAfter), Seconds(a.FullAfter())
	x.Before, x.After = level(&a.Before), level(&a.Snapshot)
	x.PassesAt = later(e.At, a.RetryAfter)
	if stage := a.Stage(); stage != nil && e.Decision.Allowed {
		x.Stage, x.Delay = stage.Share, Seconds(stage.Delay)
	}
	return x
}

func level(s *bucket.Snapshot) *Level {
	l := &Level{Remaining: amount(s.Room())}
	if owed := s.Owed(); owed > 0 {
		l.Owed = amount(owed)
	}
	return l
}

func amount(t bucket.Tokens) json.Number { return json.Number(t.String()) }
