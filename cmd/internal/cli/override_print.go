// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/cmd/internal/table"
	"github.com/metehq/mete/internal/prose"
	"github.com/metehq/mete/internal/visible"
	"github.com/metehq/mete/overrides"
)

// list prints the overrides and, with --audit, their last changes.
func (c *overrideCommand) list(ctx context.Context) error {
	answer, err := c.client.Overrides(ctx, c.audit)
	if err != nil {
		return err
	}
	if c.format == "json" {
		return writeJSON(c.std.Out, answer)
	}
	var b strings.Builder
	now := time.Now()
	if len(answer.Overrides) == 0 {
		b.WriteString("no overrides\n")
	} else {
		t := table.New("id", "action", "applies to", "expiry", "author", "reason", "source")
		for i := range answer.Overrides {
			o := &answer.Overrides[i]
			t.Add(cellText(o.ID), cellText(o.Action), cellText(targetText(&o.Override)), expiryText(o, now), cellText(o.Author), cellText(o.Reason), authorText(o))
		}
		_, _ = t.WriteTo(&b) // a strings.Builder never fails
	}
	for i := range answer.Overrides {
		for _, m := range answer.Overrides[i].Mistakes {
			fmt.Fprintf(&b, "override %s does not fit the policy: %s\n", cellText(answer.Overrides[i].ID), formatErrorDetail(m))
		}
	}
	if !answer.Persistent {
		b.WriteString("overrides are lost when the server stops, because its store is in memory only\n")
	}
	if c.audit > 0 {
		c.writeAudit(&b, answer.Audit)
	}
	_, err = fmt.Fprint(c.std.Out, b.String())
	return err
}

func (c *overrideCommand) writeAudit(b *strings.Builder, entries []api.AuditEntry) {
	b.WriteByte('\n')
	if len(entries) == 0 {
		b.WriteString("no audit entries\n")
		return
	}
	t := table.New("at", "what", "id", "author", "reason")
	for _, e := range slices.Backward(entries) {
		t.Add(e.At.UTC().Format(time.DateTime), cellText(e.What), cellText(auditSubject(&e)), cellText(e.Author), cellText(e.Reason))
	}
	_, _ = t.WriteTo(b)
}

// auditSubject describes the object of an audit entry: an override by its ID, or a bucket by its key and the
// change in tokens.
func auditSubject(e *api.AuditEntry) string {
	if e.What == string(overrides.EntryCleared) {
		return fmt.Sprintf("%s of rule %s", prose.Count(int(e.Buckets), "bucket"), e.Rule)
	}
	word := map[string]string{string(overrides.EntryReset): "to", string(overrides.EntryTaken): "from"}[e.What]
	switch tokens := e.Tokens.String(); {
	case word == "":
		return e.Override
	case tokens == "0": // an entry that an older server has written again
		return e.Key
	case tokens == "1":
		return "1 token " + word + " " + e.Key
	default:
		return tokens + " tokens " + word + " " + e.Key
	}
}

func (c *overrideCommand) printSet(o *api.OverrideStatus) error {
	if c.format == "json" {
		return writeJSON(c.std.Out, o)
	}
	_, err := fmt.Fprintf(c.std.Out, "%s: %s %s, %s\n", cellText(o.ID), cellText(o.Action), visible.Text(targetText(&o.Override)), expiryText(o, time.Now()))
	return err
}

func expiryText(o *api.OverrideStatus, now time.Time) string {
	left := o.ExpiresAt.Sub(now)
	switch {
	case o.State == string(overrides.StateExpired) || left <= 0:
		return "expired " + o.ExpiresAt.UTC().Format(time.DateTime)
	case o.State == string(overrides.StateUnfit):
		return "inactive"
	case left < time.Second:
		return "expires now"
	}
	return "expires in " + prose.Duration(prose.Roughly(left))
}

func authorText(o *api.OverrideStatus) string {
	if o.Source == string(overrides.SourceFile) {
		return "policy file"
	}
	if o.Source == string(overrides.SourceLocal) {
		return "this server"
	}
	return "admin"
}

func targetText(o *api.Override) string {
	var parts []string
	if len(o.Rules) > 0 {
		parts = append(parts, "rule "+strings.Join(o.Rules, ", "))
	}
	switch match := matchText(o.Match); {
	case o.Key != "":
		parts = append(parts, "key "+o.Key)
	case match != "":
		parts = append(parts, match)
	case len(parts) == 0 || len(o.Match) > 0:
		parts = append(parts, "all requests")
	}
	switch {
	case len(o.Limits) > 0:
		parts = append(parts, "limits "+string(o.Limits))
	case len(o.Config) > 0:
		parts = append(parts, limitText(o))
	}
	return strings.Join(parts, ", ")
}

func limitText(o *api.Override) string {
	text := string(o.Config)
	var config map[string]any
	dec := json.NewDecoder(bytes.NewReader(o.Config))
	dec.UseNumber()
	if dec.Decode(&config) == nil {
		text = formatPairs(config)
	}
	if o.Algorithm != "" && o.Algorithm != "token_bucket" {
		text = o.Algorithm + " " + text
	}
	return text
}

func matchText(match json.RawMessage) string {
	var alternatives []map[string]any
	if json.Unmarshal(match, &alternatives) != nil {
		alternatives = make([]map[string]any, 1)
		dec := json.NewDecoder(bytes.NewReader(match))
		dec.UseNumber()
		if dec.Decode(&alternatives[0]) != nil {
			return string(match)
		}
	}
	texts := make([]string, len(alternatives))
	for i, clauses := range alternatives {
		texts[i] = formatPairs(clauses)
	}
	return strings.Join(texts, "; or ")
}

func formatPairs(all map[string]any) string {
	var list []string
	for name, value := range all {
		text, ok := value.(string)
		if !ok {
			b, _ := json.Marshal(value) // the value came from JSON
			text = string(b)
		}
		list = append(list, name+"="+text)
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}
