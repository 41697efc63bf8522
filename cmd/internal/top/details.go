// SPDX-License-Identifier: Apache-2.0

package top

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/cmd/internal/display"
	"github.com/metehq/mete/internal/prose"
)

// shares names the total that the count of a key is a share of, by kind.
var shares = map[string]string{"denied": "denied", "shadow": "would deny", "near": "let through near a limit"}

// details returns the lines about the selected key with commands to copy.
func (m *model) details() []string {
	k, top := m.selected, &m.top
	lines := []string{bold.Render("Rule " + display.EscapeUnsafe(k.Limit))}
	const nameColumns = 24
	widest := len("retry after")
	for _, p := range k.Parts {
		widest = max(widest, min(display.Width(display.EscapeUnsafe(p.Name)), nameColumns))
	}
	fact := func(name, text string) {
		lines = append(lines, dim.Render("  "+fill(display.EscapeUnsafe(name), widest))+" "+display.EscapeUnsafe(text))
	}
	for _, p := range k.Parts {
		value := p.Value
		if p.Hashed {
			value += " (the hash of a secret)"
		}
		fact(p.Name, value)
	}
	if len(k.Parts) == 0 {
		fact("key of", "everyone: the rule has one bucket for all")
	}
	lines = append(lines, "")
	covered := top.At.Sub(top.Since)
	times := "times"
	if k.Count == 1 {
		times = "time"
	}
	count := fmt.Sprintf("%s %s in the last %s, %s/s", countText(k), times, prose.Duration(covered.Round(time.Second)), perSecond(k.Count, covered))
	for _, r := range top.Rules {
		if r.Rule == k.Rule {
			count += ", " + shareText(k, r.Total) + " of what the rule " + shares[top.Kind]
		}
	}
	fact(top.Kind, count)
	fact("first", momentText(top.At, k.First))
	fact("last", momentText(top.At, k.Last))
	if top.Kind != "near" {
		fact("retry after", waitText(k.RetryAfter.Duration()))
	}
	fact("key", k.Key)
	if m.key == k.Key && m.bucket != nil {
		for i, text := range slotTexts(m.bucket) {
			fact([]string{"slots", ""}[min(i, 1)], text)
		}
	}
	return append(append(lines, ""), m.commands(k)...)
}

// maxSlots bounds the slots in the details, so that the commands stay on the screen.
const maxSlots = 8

// slotTexts returns a line with the number of held slots, and one for each of the first to end. Buckets of other limits have none.
func slotTexts(b *api.Bucket) []string {
	if len(b.Slots) == 0 {
		return nil
	}
	held := bucket.Tokens(b.Capacity - b.Remaining).Whole()
	texts := []string{fmt.Sprintf("%d of %s held", held, b.Capacity)}
	for i, s := range b.Slots {
		if i == maxSlots {
			texts = append(texts, fmt.Sprintf("and %d more", max(held-maxSlots, 1)))
			break
		}
		texts = append(texts, s.ID+" ends in "+prose.Duration(s.Left.Duration().Round(time.Second/10)))
	}
	return texts
}

func momentText(now, t time.Time) string {
	text := t.UTC().Format("15:04:05 UTC")
	if ago := sinceText(now, t); ago != "now" {
		return text + ", " + ago + " ago"
	}
	return text + ", now"
}

// commands returns commands about a key for the user to copy.
func (m *model) commands(k *api.TopKey) (lines []string) {
	switch {
	case m.top.Masked:
		return []string{"The key is masked. To see it, and to act on it, use a token of the role", "operate: --token-file, or $METE_TOKEN."}
	case k.Cut || display.EscapeUnsafe(k.Key) != k.Key:
		return []string{"The key cannot be displayed here. To see it, run: mete top --format json"}
	}
	var server []string
	if u, err := url.Parse(m.options.Server); err == nil && !m.options.Standard {
		u.User = nil // may contain a secret
		server = []string{"--server", display.Quote(u.String())}
	}
	command := func(title string, arguments ...string) {
		lines = append(lines, bold.Render(title))
		for _, text := range wrapCommand(append(arguments, server...), m.width-4) {
			lines = append(lines, "  "+text)
		}
	}
	if attributes := attributesOf(k); len(attributes) > 0 {
		command("Explain its next request", append([]string{"mete", "explain"}, attributes...)...)
	}
	for _, action := range []struct{ title, word string }{{"Block it for an hour", "block"}, {"Let it through for an hour", "allow"}} {
		command(action.title, "mete", "override", "set", "--action", action.word, "--key", display.Quote(k.Key), "--expires", "1h", "--reason", "'reason'")
	}
	return lines
}

// attributesOf returns the parts of a key as attributes of a request, or none if a part is hashed.
func attributesOf(k *api.TopKey) []string {
	var all []string
	for _, p := range k.Parts {
		if p.Hashed || display.EscapeUnsafe(p.Name+p.Value) != p.Name+p.Value {
			return nil
		}
		all = append(all, display.Quote(p.Name+"="+p.Value))
	}
	return all
}

// wrapCommand breaks a command into lines of at most width columns if its arguments allow that. A shell reads the
// lines as one command.
func wrapCommand(arguments []string, width int) []string {
	var lines []string
	current := arguments[0]
	for i := 1; i < len(arguments); i++ {
		next := arguments[i]
		if strings.HasPrefix(next, "--") && i+1 < len(arguments) { // keep an option and its value on one line
			i++
			next += " " + arguments[i]
		}
		if display.Width(current)+1+display.Width(next) > width-len(` \`) {
			lines = append(lines, current+` \`)
			current = "  " + next
			continue
		}
		current += " " + next
	}
	return append(lines, current)
}
