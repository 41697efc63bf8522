// SPDX-License-Identifier: Apache-2.0

package curl

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/metehq/mete/internal/requesttext"
	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

type word struct {
	text string
	at   int // offset in the text
}

// cmdExe matches the carets of a command line for cmd.exe on Windows.
var cmdExe = regexp.MustCompile(`(?m) \^("|\s*$)`)

// splitWords splits the first command of text into words as bash does. It runs nothing and does not expand
// variables.
func splitWords(text string) (words []word, notes []string, err error) {
	if at := cmdExe.FindStringIndex(text); at != nil {
		return nil, nil, requesttext.ErrorAt(text, at[0]+1, "this command is written for cmd.exe", `copy the request "as cURL (bash)"`)
	}
	file, err := syntax.NewParser().Parse(strings.NewReader(text), "")
	if e, ok := errors.AsType[syntax.ParseError](err); ok {
		return nil, nil, requesttext.ErrorAt(text, int(e.Pos.Offset()), e.Text, "")
	}
	if err != nil {
		return nil, nil, requesttext.ErrorAt(text, 0, "a shell cannot read this command", "")
	}
	call, end := findCommand(file)
	if call == nil {
		return nil, nil, requesttext.ErrorAt(text, 0, "no curl command given", "")
	}
	variables := &expand.Config{Env: expand.FuncEnviron(func(name string) string {
		if name == "IFS" {
			return "" // variables are not split
		}
		return "$" + name
	})}
	for _, arg := range call.Args {
		command := -1 // offset of a command substitution or an arithmetic expansion
		syntax.Walk(arg, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.CmdSubst, *syntax.ProcSubst, *syntax.ArithmExp:
				command = int(n.Pos().Offset())
			case *syntax.ParamExp:
				notes = append(notes, fmt.Sprintf("$%s stays literal: no shell expands it", requesttext.Shorten(n.Param.Value)))
			}
			return true
		})
		if command >= 0 {
			return nil, nil, requesttext.ErrorAt(text, command, "a shell would run a command here", "replace it with its output")
		}
		split := *arg
		syntax.SplitBraces(&split)
		isBrace := func(p syntax.WordPart) bool { _, ok := p.(*syntax.BraceExp); return ok }
		if slices.ContainsFunc(split.Parts, isBrace) { // braces may expand to millions of words
			return nil, nil, requesttext.ErrorAt(text, int(arg.Pos().Offset()), "a shell expands { and } to several words", "put the word in quotes")
		}
		fields, err := expand.Fields(variables, arg)
		if err != nil {
			return nil, nil, requesttext.ErrorAt(text, int(arg.Pos().Offset()), "a shell cannot expand this word", "put it in single quotes")
		}
		for _, s := range fields {
			words = append(words, word{s, int(arg.Pos().Offset())})
		}
	}
	note, err := checkRest(text, int(end))
	if note != "" {
		notes = append(notes, note)
	}
	return words, notes, err
}

func findCommand(file *syntax.File) (call *syntax.CallExpr, end uint) {
	var redirects []*syntax.Redirect
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			if call == nil {
				redirects = n.Redirs
			}
		case *syntax.CallExpr:
			if call == nil && len(n.Args) > 0 {
				call = n
			}
		}
		return call == nil
	})
	if call == nil {
		return nil, 0
	}
	end = call.End().Offset()
	for _, r := range redirects {
		end = max(end, r.End().Offset())
	}
	return call, end
}

// checkRest checks the text after the command. Text on a new line is probably a missing backslash. Text after & is
// probably part of an unquoted URL.
func checkRest(text string, end int) (note string, err error) {
	for end < len(text) && (text[end] == ' ' || text[end] == '\t') {
		end++
	}
	rest := strings.TrimLeft(text[end:], "|;&()")
	if first := strings.Trim(rest, " \t\n\\"); first == "" || first[0] == '#' {
		return "", nil
	}
	if len(rest) < len(text)-end {
		note = fmt.Sprintf("ignored: everything after %q", text[end:end+1])
		if text[end] == '&' && end > 0 && text[end+1] != '&' && text[end-1] != ' ' {
			note += ": put the URL in quotes if it continues there"
		}
		return note, nil
	}
	for line := range strings.Lines(rest) {
		if s := strings.TrimSpace(line); s != "" && s[0] != '#' {
			at := len(text) - len(rest) + strings.Index(line, s)
			return "", requesttext.ErrorAt(text, at, "the command ends on the previous line", `end that line with a \ if it continues here`)
		}
		rest = rest[len(line):]
	}
	return "", nil
}
