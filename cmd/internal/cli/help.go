// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/internal/spell"
)

// helpWidth is how wide the list of flags is, in letters.
const helpWidth = 80

// overview is what mete says when it is asked nothing.
func overview() string {
	var b strings.Builder
	b.WriteString("mete gives out by measure: a rate limiter for everything that speaks HTTP.\n\n")
	b.WriteString("Usage: mete COMMAND [flags] [arguments]\n\n")
	for _, c := range commands() {
		fmt.Fprintf(&b, "  %-10s %s\n", c.name, c.summary)
	}
	b.WriteString("\nStart with 'mete serve'. 'mete help COMMAND' tells more about a command,\n" +
		"'mete help config' about the configuration file.\n")
	return b.String()
}

// help prints the help of what args name: a command, or the configuration.
func help(ctx context.Context, std Streams, args []string) int {
	if len(args) == 0 {
		fmt.Fprint(std.Out, overview())
		return exitOK
	}
	if args[0] == "config" {
		fmt.Fprint(std.Out, config.Sample)
		return exitOK
	}
	if c, ok := lookup(args[0]); ok {
		return c.run(ctx, std, []string{"-h"})
	}
	return unknownCommand(std, args[0])
}

func unknownCommand(std Streams, name string) int {
	known := []string{"help"}
	for _, c := range commands() {
		known = append(known, c.name)
	}
	fmt.Fprintf(std.Err, "mete: unknown command %q", name)
	if near := spell.Nearest(name, known); near != "" {
		fmt.Fprintf(std.Err, "; did you mean 'mete %s'?", near)
	}
	fmt.Fprintln(std.Err, "\nSee 'mete help'.")
	return exitUsage
}

// help formats the command's help: how to call it, what it does, its flags.
func (fs *flagSet) help() string {
	var b strings.Builder
	c, _ := lookup(fs.Name())
	fmt.Fprintf(&b, "Usage: mete %s\n\n%s\n", strings.TrimSpace(c.name+" "+c.usage), strings.TrimSpace(c.about))
	var names, texts []string
	width := 0
	fs.VisitAll(func(f *flag.Flag) {
		arg, text := flag.UnquoteUsage(f)
		name := strings.TrimSpace(dashed(f.Name) + " " + arg)
		if f.DefValue != "" && f.DefValue != "0" && f.DefValue != "false" && f.DefValue != "0s" {
			text += " (default " + f.DefValue + ")"
		}
		names, texts, width = append(names, name), append(texts, text), max(width, len(name))
	})
	if len(names) > 0 {
		b.WriteString("\nFlags:\n")
	}
	for i := range names {
		text := wrap(texts[i], helpWidth-width-4)
		fmt.Fprintf(&b, "  %-*s  %s\n", width, names[i], strings.Join(text, "\n"+strings.Repeat(" ", width+4)))
	}
	return b.String()
}

// dashed is a flag as one types it.
func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// wrap breaks text into lines of at most so many letters, between words.
func wrap(text string, width int) []string {
	lines := []string{""}
	for word := range strings.FieldsSeq(text) {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case utf8.RuneCountInString(*last)+1+utf8.RuneCountInString(word) <= width:
			*last += " " + word
		default:
			lines = append(lines, word)
		}
	}
	return lines
}
