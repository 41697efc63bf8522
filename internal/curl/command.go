// SPDX-License-Identifier: Apache-2.0

package curl

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/metehq/mete/internal/spell"
)

// A command is a curl command line while it is read.
type command struct {
	Message
	text  string
	words []word
	i     int

	url     *word
	given   map[string]bool // flags that are asked for
	values  map[string]word // of options of which the last one counts
	header  []word
	cookies []word
	query   []string
	body    body
}

// Command reads a curl command line: in the form of a POSIX shell, with the $'…' of
// bash, or in that of Windows' cmd.exe, as browsers copy both. Options that say nothing
// of the request are left out, and those with a value noted. The error is an [Error].
func Command(text string) (Message, error) {
	if err := checkText(text); err != nil {
		return Message{}, err
	}
	split := shellWords
	if isCmd(text) {
		split = cmdWords
	}
	words, notes, err := split(text)
	if err != nil {
		return Message{}, err
	}
	c := command{text: text, words: words, given: map[string]bool{}, values: map[string]word{}}
	for _, n := range notes {
		c.note(n)
	}
	if err := c.program(); err != nil {
		return Message{}, err
	}
	if err := c.arguments(); err != nil {
		return Message{}, err
	}
	if err := c.message(); err != nil {
		return Message{}, err
	}
	return c.Message, nil
}

// program reads the name of the program, and what may stand before it.
func (c *command) program() error {
	for ; c.i < len(c.words); c.i++ {
		w := c.words[c.i].text
		name := path.Base(strings.ReplaceAll(w, `\`, "/"))
		switch before, _, assigns := strings.Cut(w, "="); {
		case name == "curl" || strings.EqualFold(name, "curl.exe"):
			c.i++
			return nil
		case w == "$" || w == "sudo" || w == "time", assigns && isToken(before):
		default:
			return errorAt(c.text, c.words[c.i].at, "this is no curl command", "begin it with curl")
		}
	}
	return errorAt(c.text, 0, "there is no curl command", "")
}

// isCommand reports whether text is probably meant as a curl command.
func isCommand(text string) bool {
	split := shellWords
	if isCmd(text) {
		split = cmdWords
	}
	first, _, _ := strings.Cut(strings.TrimLeft(text, " \t\r\n$"), " ")
	if name := strings.TrimRight(first, "\\^\r\n"); strings.EqualFold(name, "curl") || strings.EqualFold(name, "curl.exe") || strings.HasSuffix(name, "/curl") {
		return true
	}
	words, _, err := split(text)
	if err != nil {
		return false
	}
	c := command{text: text, words: words}
	return c.program() == nil
}

// arguments reads all options and URLs.
func (c *command) arguments() error {
	for onlyURLs := false; c.i < len(c.words); {
		w := c.words[c.i]
		c.i++
		var err error
		switch {
		case onlyURLs || w.text == "" || w.text[0] != '-' || w.text == "-":
			err = c.readURL(w)
		case w.text == "--":
			onlyURLs = true
		case strings.HasPrefix(w.text, "--"):
			err = c.long(w)
		default:
			err = c.short(w)
		}
		if err != nil {
			return err
		}
	}
	if c.url == nil {
		return errorAt(c.text, len(strings.TrimRight(c.text, " \t\r\n")), "the command has no URL", "")
	}
	return nil
}

func (c *command) readURL(w word) error {
	if c.url != nil {
		return errorAt(c.text, w.at, "this is a second URL", "one request is explained at a time; put a value that has a space in quotes")
	}
	c.url = &w
	return nil
}

// short reads -X, and several of them as one word, such as -sSXPOST.
func (c *command) short(w word) error {
	for i := 1; i < len(w.text); i++ {
		name, ok := shorts[w.text[i]]
		if !ok {
			r := []rune(w.text[i:])[0]
			return errorAt(c.text, w.at, fmt.Sprintf("curl has no option -%c", r), "")
		}
		if !hasValue(options[name]) {
			if err := c.flag(w, name); err != nil {
				return err
			}
			continue
		}
		if i+1 < len(w.text) {
			return c.option(w, name, word{w.text[i+1:], w.at})
		}
		return c.valued(w, name)
	}
	return nil
}

func hasValue(k kind) bool {
	return k == asked || k == ignored || k == ignoredSecret
}

// long reads --name.
func (c *command) long(w word) error {
	name := w.text[2:]
	k := options[name]
	if rest, no := strings.CutPrefix(name, "no-"); k == unknown && no && (options[rest] == flag || options[rest] == differs || options[rest] == askedFlag) {
		delete(c.given, rest)
		return nil
	}
	switch {
	case k == unknown && strings.HasPrefix(name, "expand-"):
		return errorAt(c.text, w.at, "variables of curl are not replaced", "write their values where they stand")
	case k == unknown:
		hint := ""
		if before, _, found := strings.Cut(name, "="); found && options[before] != unknown {
			hint = fmt.Sprintf("curl takes --%s and its value as two words", before)
		} else if near := spell.Nearest(name, slices.Sorted(maps.Keys(options))); near != "" {
			hint = fmt.Sprintf("did you mean --%s?", near)
		}
		return errorAt(c.text, w.at, fmt.Sprintf("curl has no option --%s", clip(before(name, "="))), hint)
	case !hasValue(k):
		return c.flag(w, name)
	}
	return c.valued(w, name)
}

// before is s up to sep, which keeps values out of messages.
func before(s, sep string) string {
	s, _, _ = strings.Cut(s, sep)
	return s
}

// valued reads an option whose value is the next word.
func (c *command) valued(w word, name string) error {
	if c.i == len(c.words) {
		return errorAt(c.text, w.at, fmt.Sprintf("the value of --%s is missing", name), "")
	}
	value := c.words[c.i]
	c.i++
	return c.option(w, name, value)
}

// flag reads an option without a value.
func (c *command) flag(w word, name string) error {
	switch options[name] {
	case refused:
		why := whyRefused[name]
		return errorAt(c.text, w.at, why[0], why[1])
	case differs:
		c.note(fmt.Sprintf("ignored: --%s, by which the request may have other headers", name))
	case askedFlag:
		c.given[name] = true
	}
	return nil
}

// option reads an option with a value.
func (c *command) option(w word, name string, value word) error {
	switch options[name] {
	case ignored:
		c.note(fmt.Sprintf("ignored: --%s %s", name, clip(value.text)))
		return nil
	case ignoredSecret:
		c.note(fmt.Sprintf("ignored: --%s", name))
		return nil
	}
	switch name {
	case "url":
		return c.readURL(value)
	case "header":
		if strings.HasPrefix(value.text, "@") {
			return errorAt(c.text, value.at, "headers in a file are not read", "write them here")
		}
		c.header = append(c.header, value)
	case "cookie":
		if !strings.Contains(value.text, "=") {
			c.note("ignored: --cookie with the name of a file, which is not read")
			return nil
		}
		c.cookies = append(c.cookies, value)
	case "url-query":
		encoded, err := c.urlQuery(value)
		if err != nil {
			return err
		}
		c.query = append(c.query, encoded)
	case "data", "data-ascii", "data-binary", "data-raw", "data-urlencode", "json", "form", "form-string":
		return c.data(w, name, value)
	case "upload-file":
		c.note("the file of --upload-file is not read")
		c.values[name] = value
	default:
		c.values[name] = value
	}
	return nil
}

// value is the value of an option, and whether it is there.
func (c *command) value(name string) (string, bool) {
	w, ok := c.values[name]
	return w.text, ok
}

// method is what the options come to.
func (c *command) method() (string, error) {
	_, upload := c.values["upload-file"]
	method := "GET"
	switch {
	case c.given["head"]:
		method = "HEAD"
	case upload:
		method = "PUT"
	case c.body.there && !c.given["get"]:
		method = "POST"
	}
	if c.given["head"] && (upload || c.body.there && !c.given["get"]) {
		return "", errorAt(c.text, c.body.at, "--head has no body, and this is one", "leave out --head, or add --get")
	}
	if c.body.form && c.given["get"] {
		return "", errorAt(c.text, c.body.at, "--get puts data into the URL, and a form is none", "say --data-urlencode")
	}
	w, ok := c.values["request"]
	if ok && !isToken(w.text) {
		return "", errorAt(c.text, w.at, "this is no method", "write one such as GET")
	}
	return cmp.Or(w.text, method), nil
}
