// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bufio"
	"encoding/json"
	"io"

	"github.com/metehq/mete"
	"github.com/metehq/mete/api"
	"github.com/metehq/mete/cmd/internal/trace"
)

// ComparisonLines writes a comparison as JSON, an object a line: one for each
// request that the policies disagree about,
//
//	{"at":12.5,"place":"access.log:7","change":"newly_limited",
//	 "old":{"allowed":true,"rule":"free","reason":"","retry_after":0},
//	 "new":{"allowed":false,"rule":"free","reason":"token_bucket_exceeded","retry_after":0.1}}
//
// and in the end one with nothing but a summary of all of them. Times are as in
// [JSONLines]. It is not safe for concurrent use.
type ComparisonLines struct {
	w     *bufio.Writer
	names names
	line  []byte
}

// NewComparisonLines returns a writer to w. Its lines are buffered until
// [ComparisonLines.Flush].
func NewComparisonLines(w io.Writer) *ComparisonLines {
	return &ComparisonLines{w: bufio.NewWriterSize(w, 1<<16), names: names{}}
}

// Write writes a line about a request, at that place of the trace, unless the
// policies agree about it.
func (j *ComparisonLines) Write(req *trace.Request, old, new *mete.Decision, place func() string) error {
	change := ChangeOf(old, new)
	if !change.Differs() {
		return nil
	}
	b := append(j.line[:0], `{"at":`...)
	b = api.AppendMicros(b, int64(req.At))
	b = append(b, `,"place":`...)
	quoted, err := json.Marshal(place())
	if err != nil {
		return err
	}
	b = append(b, quoted...)
	b = append(b, `,"change":"`+change.String()+`","old":`...)
	b = j.decision(b, old)
	b = append(b, `,"new":`...)
	b = j.decision(b, new)
	j.line = append(b, "}\n"...)
	_, err = j.w.Write(j.line)
	return err
}

func (j *ComparisonLines) decision(b []byte, d *mete.Decision) []byte {
	b = append(b, `{"allowed":`...)
	if d.Allowed {
		b = append(b, `true,"rule":`...)
	} else {
		b = append(b, `false,"rule":`...)
	}
	b = append(b, j.names.quote(d.Rule)...)
	b = append(b, `,"reason":`...)
	b = append(b, j.names.quote(d.Reason)...)
	b = append(b, `,"retry_after":`...)
	return append(api.Seconds(d.RetryAfter).Append(b), '}')
}

// Flush writes what is buffered.
func (j *ComparisonLines) Flush() error { return j.w.Flush() }

// The summary of a comparison, in JSON.
type (
	summaryJSON struct {
		Requests      int64      `json:"requests"`
		AllowedByBoth int64      `json:"allowed_by_both"`
		DeniedByBoth  int64      `json:"denied_by_both"`
		NewlyLimited  int64      `json:"newly_limited"`
		NewlyAdmitted int64      `json:"newly_admitted"`
		ShadowOld     int64      `json:"shadow_old"` // allowed, but denied by a rule in shadow
		ShadowNew     int64      `json:"shadow_new"`
		DelayedOld    int64      `json:"delayed_old"`
		DelayedNew    int64      `json:"delayed_new"`
		InvalidLines  int64      `json:"invalid_lines"`
		Rules         []ruleJSON `json:"rules"`
		LimitedKeys   []keyJSON  `json:"newly_limited_keys"` // the most frequent
		AdmittedKeys  []keyJSON  `json:"newly_admitted_keys"`
	}
	ruleJSON struct {
		Rule          string `json:"rule"`
		Edit          string `json:"edit"` // added, removed, changed, or empty
		DeniedOld     int64  `json:"denied_old"`
		DeniedNew     int64  `json:"denied_new"`
		NewlyLimited  int64  `json:"newly_limited"`
		NewlyAdmitted int64  `json:"newly_admitted"`
		ShadowOld     int64  `json:"shadow_old"`
		ShadowNew     int64  `json:"shadow_new"`
	}
	keyJSON struct {
		Key      string          `json:"key"`
		Rule     string          `json:"rule"`
		Requests int64           `json:"requests"`
		First    json.RawMessage `json:"first"`
		Last     json.RawMessage `json:"last"`
		Place    string          `json:"place"`
	}
)

// WriteSummary writes the last line, {"summary":{…}}. Keys have numbers instead of
// names unless they are to be shown.
func (j *ComparisonLines) WriteSummary(c *Comparison, showKeys bool) error {
	count := func(change Change) int64 { return c.changed[change].count }
	names := keyNames{show: showKeys}
	summary := summaryJSON{
		Requests: c.requests.count, AllowedByBoth: count(SameAllowed), DeniedByBoth: count(SameDenied),
		NewlyLimited: count(NewlyLimited), NewlyAdmitted: count(NewlyAdmitted), ShadowOld: c.shadowed[0], ShadowNew: c.shadowed[1],
		DelayedOld: c.delayed[0], DelayedNew: c.delayed[1], InvalidLines: c.invalid, Rules: []ruleJSON{},
		LimitedKeys: keysJSON(&c.keys[NewlyLimited], &names), AdmittedKeys: keysJSON(&c.keys[NewlyAdmitted], &names),
	}
	for _, r := range c.rules {
		summary.Rules = append(summary.Rules, ruleJSON{Rule: r.name, Edit: r.edit, DeniedOld: r.denied[0], DeniedNew: r.denied[1],
			NewlyLimited: r.changed[NewlyLimited], NewlyAdmitted: r.changed[NewlyAdmitted], ShadowOld: r.shadowed[0], ShadowNew: r.shadowed[1]})
	}
	return json.NewEncoder(j.w).Encode(map[string]summaryJSON{"summary": summary})
}

func keysJSON(list *toplist, names *keyNames) []keyJSON {
	keys := []keyJSON{}
	for _, entry := range list.top(maxShownKeys) {
		keys = append(keys, keyJSON{Key: names.of(entry), Rule: entry.rule, Requests: entry.count,
			First: api.AppendMicros(nil, int64(entry.first)), Last: api.AppendMicros(nil, int64(entry.last)), Place: entry.place})
	}
	return keys
}
