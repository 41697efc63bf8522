// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bufio"
	"encoding/json"
	"io"
	"strconv"

	"github.com/metehq/mete"
	"github.com/metehq/mete/api"
	"github.com/metehq/mete/cmd/internal/trace"
)

// Lines writes decisions as JSON lines. [Lines.Write] writes one decision:
//
//	{"at":12.5,"allowed":false,"rule":"free","reason":"token_bucket_exceeded","remaining":0,"retry_after":0.1,"full_after":2}
//
// Times are in seconds with microsecond precision. The fields describe the deciding bucket: the one with the
// longest wait or, if the request is allowed, the one with the fewest tokens left. retry_after is 0 if allowed and
// null if no wait helps. remaining and full_after are null if no bucket decided. rule is empty if no rule applied.
// If a leaky bucket delays the request, "wait" follows retry_after.
//
// [Lines.WriteChange] writes a request that two policies decide differently:
//
//	{"at":12.5,"place":"access.log:7","change":"newly_limited",
//	 "old":{"allowed":true,"rule":"free","reason":"","retry_after":0},
//	 "new":{"allowed":false,"rule":"free","reason":"token_bucket_exceeded","retry_after":0.1}}
//
// Lines are buffered until [Lines.Flush]. Lines is not safe for concurrent use.
type Lines struct {
	w     *bufio.Writer
	line  []byte
	names map[string][]byte // names of rules and reasons in JSON
}

func NewLines(w io.Writer) *Lines {
	return &Lines{w: bufio.NewWriterSize(w, 1<<16), names: map[string][]byte{}}
}

func (l *Lines) Flush() error { return l.w.Flush() }

func (l *Lines) quote(s string) []byte {
	quoted, ok := l.names[s]
	if !ok {
		quoted, _ = json.Marshal(s) // a string always marshals
		l.names[s] = quoted
	}
	return quoted
}

// appendVerdict appends the fields that both kinds of lines share.
func (l *Lines) appendVerdict(b []byte, d *mete.Decision) []byte {
	b = strconv.AppendBool(append(b, `"allowed":`...), d.Allowed)
	b = append(append(b, `,"rule":`...), l.quote(d.Rule)...)
	return append(append(b, `,"reason":`...), l.quote(d.Reason)...)
}

func (l *Lines) Write(req *trace.Request, d *mete.Decision) error {
	b := api.AppendMicros(append(l.line[:0], `{"at":`...), int64(req.At))
	b = l.appendVerdict(append(b, ','), d)
	decider := d.Decider()
	b = append(b, `,"remaining":`...)
	if decider == nil {
		b = append(b, "null"...)
	} else {
		b = strconv.AppendInt(b, decider.Room().Whole(), 10)
	}
	b = api.Seconds(d.RetryAfter).Append(append(b, `,"retry_after":`...))
	if d.Wait > 0 {
		b = api.Seconds(d.Wait).Append(append(b, `,"wait":`...))
	}
	b = append(b, `,"full_after":`...)
	if decider == nil {
		b = append(b, "null"...)
	} else {
		b = api.Seconds(decider.FullAfter()).Append(b)
	}
	l.line = append(b, "}\n"...)
	_, err := l.w.Write(l.line)
	return err
}

// WriteChange writes a line about a request, with its position in the trace, if the policies disagree.
func (l *Lines) WriteChange(req *trace.Request, old, new *mete.Decision, place func() string) error {
	change := ChangeOf(old, new)
	if !change.Differs() {
		return nil
	}
	b := api.AppendMicros(append(l.line[:0], `{"at":`...), int64(req.At))
	quoted, err := json.Marshal(place())
	if err != nil {
		return err
	}
	b = append(append(b, `,"place":`...), quoted...)
	b = append(b, `,"change":"`+change.String()+`"`...)
	for i, d := range [...]*mete.Decision{old, new} {
		b = l.appendVerdict(append(b, [...]string{`,"old":{`, `,"new":{`}[i]...), d)
		b = append(api.Seconds(d.RetryAfter).Append(append(b, `,"retry_after":`...)), '}')
	}
	l.line = append(b, "}\n"...)
	_, err = l.w.Write(l.line)
	return err
}

// The JSON summary of a comparison.
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

// WriteSummary writes the last line of a comparison, {"summary":{…}}. Unless showKeys is set, numbers replace keys.
func (l *Lines) WriteSummary(c *Comparison, showKeys bool) error {
	names := keyNames{show: showKeys}
	s := summaryJSON{
		c.requests.count, c.Count(ChangeNoneAllowed), c.Count(ChangeNoneDenied), c.Count(ChangeNewlyLimited), c.Count(ChangeNewlyAdmitted),
		c.shadowed[0], c.shadowed[1], c.delayed[0], c.delayed[1], c.invalid, []ruleJSON{},
		keysJSON(&c.keys[ChangeNewlyLimited], &names), keysJSON(&c.keys[ChangeNewlyAdmitted], &names),
	}
	for _, r := range c.rules {
		s.Rules = append(s.Rules, ruleJSON{r.name, r.edit, r.denied[0], r.denied[1], r.changed[ChangeNewlyLimited], r.changed[ChangeNewlyAdmitted], r.shadowed[0], r.shadowed[1]})
	}
	return json.NewEncoder(l.w).Encode(map[string]summaryJSON{"summary": s})
}

func keysJSON(list *toplist, names *keyNames) []keyJSON {
	keys := []keyJSON{}
	for _, k := range list.top(maxTextKeys) {
		keys = append(keys, keyJSON{names.name(k), k.rule, k.count, api.AppendMicros(nil, int64(k.first)), api.AppendMicros(nil, int64(k.last)), k.place})
	}
	return keys
}
