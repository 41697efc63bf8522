// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/cmd/internal/display"
	"github.com/metehq/mete/cmd/internal/prose"
)

// details are all that is known of the key that is open, and what can be done about it.
func (f *topFrame) details(width int) []line {
	k, top := f.open, f.top
	var lines []line
	fact := func(name, text string) {
		lines = append(lines, line{{fmt.Sprintf("  %-12s", name), []look{dim}}, {text: text}})
	}
	lines = append(lines, line{{"Rule " + k.Limit, []look{bold}}})
	for _, p := range k.Parts {
		value := p.Value
		if p.Hashed {
			value += " (a hash of what may be a secret)"
		}
		fact(display.Cut(display.Inert(p.Name), 24)+" ", value)
	}
	if len(k.Parts) == 0 {
		fact("whose", "everyone: the rule has one bucket for all")
	}
	lines = append(lines, nil)
	covered := top.At.Sub(top.Since)
	times := "times"
	if k.Count == 1 {
		times = "time"
	}
	count := fmt.Sprintf("%s %s in the last %s, %s/s", countText(k), times, prose.Duration(covered.Round(time.Second)), perSecond(k.Count, covered))
	for _, r := range top.Rules {
		if r.Rule == k.Rule {
			count += ", " + shareText(k, r.Total) + " of what the rule " + map[string]string{"denied": "denied", "shadow": "would deny", "near": "let through near a limit"}[top.Kind]
		}
	}
	fact(top.Kind, count)
	fact("first", momentText(top.At, k.First))
	fact("last", momentText(top.At, k.Last))
	if top.Kind != "near" {
		fact("retry after", waitText(k.RetryAfter.Duration()))
	}
	fact("key", k.Key)
	return append(append(lines, nil), f.commands(k, width)...)
}

// momentText is a time, and how long ago it was.
func momentText(now, t time.Time) string {
	text := t.UTC().Format("15:04:05 UTC")
	if ago := sinceText(now, t); ago != "now" {
		return text + ", " + ago + " ago"
	}
	return text + ", now"
}

// commands are what can be done about a key, to be copied.
func (f *topFrame) commands(k *api.TopKey, width int) []line {
	switch {
	case f.top.Masked:
		return []line{plainLine("The key is masked. To see it, and to do something about it, takes a token of"), plainLine("the role operate: --token-file, or $METE_TOKEN.")}
	case k.Cut || display.Inert(k.Key) != k.Key:
		return []line{plainLine("The key cannot be typed here. Look at it with: mete top --format json")}
	}
	var lines []line
	command := func(what string, arguments ...string) {
		lines = append(lines, line{{what, []look{bold}}})
		for _, text := range wrapCommand(arguments, width-4) {
			lines = append(lines, plainLine("  "+text))
		}
	}
	server := f.serverFlag()
	if attributes := attributesOf(k); len(attributes) > 0 {
		command("What would it be told?", slices.Concat([]string{"mete", "explain"}, attributes, server)...)
	}
	for _, action := range []struct{ what, word string }{{"Block it for an hour", "block"}, {"Let it through for an hour", "allow"}} {
		command(action.what, slices.Concat([]string{"mete", "override", "set", "--action", action.word, "--key", shellWord(k.Key), "--expires", "1h", "--reason", shellWord("say why")}, server)...)
	}
	return lines
}

// serverFlag names the server, unless it is the one that is asked anyway. What it is
// asked with is nobody's business.
func (f *topFrame) serverFlag() []string {
	u, err := url.Parse(f.server)
	if err != nil || f.server == "http://"+config.Default().AdminListen {
		return nil
	}
	u.User = nil
	return []string{"--server", shellWord(u.String())}
}

// attributesOf are the parts of a key as a request has them, where all of them are known.
func attributesOf(k *api.TopKey) []string {
	var all []string
	for _, p := range k.Parts {
		if p.Hashed || display.Inert(p.Name+p.Value) != p.Name+p.Value {
			return nil
		}
		all = append(all, shellWord(p.Name+"="+p.Value))
	}
	return all
}

// shellWord is one argument as a shell reads it.
func shellWord(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=@%+,", r)
	}
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// wrapCommand breaks a command into lines of at most so many columns, where arguments
// allow that, so that it can be copied as it stands.
func wrapCommand(arguments []string, width int) []string {
	var lines []string
	current := arguments[0]
	for i := 1; i < len(arguments); i++ {
		next := arguments[i]
		if strings.HasPrefix(next, "--") && i+1 < len(arguments) { // an option stays with its value
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
