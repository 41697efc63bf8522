// SPDX-License-Identifier: Apache-2.0

// Package curl parses a curl command line, as browsers copy it, and returns the HTTP request that curl would send.
// It runs nothing and reads no files.
//
// It supports the options that define a request: method, headers, data, URL, user and cookies. It ignores options
// that do not change the request. All other options are errors.
package curl

import (
	"fmt"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/internal/requesttext"
	"github.com/metehq/mete/internal/spell"
)

var letters = map[byte]string{
	'4': "ipv4", '6': "ipv6", '#': "progress-bar", 'A': "user-agent", 'b': "cookie", 'd': "data", 'e': "referer", 'f': "fail", 'G': "get", 'g': "globoff",
	'H': "header", 'I': "head", 'i': "include", 'k': "insecure", 'L': "location", 'm': "max-time", 'N': "no-buffer", 'o': "output",
	'S': "show-error", 's': "silent", 'u': "user", 'v': "verbose", 'w': "write-out", 'X': "request",
}

type option uint8

const (
	unread   option = iota // not supported, may change the request
	flag                   // without a value, defines the request
	value                  // with a value, defines the request
	harmless               // without a value, ignored
	noted                  // with a value, ignored with a note
)

var options = func() map[string]option {
	all := map[string]option{}
	for kind, names := range map[option]string{
		flag:  "compressed get globoff head",
		value: `cookie data data-ascii data-binary data-raw data-urlencode header json referer request url user user-agent`,
		harmless: `fail fail-with-body http1.1 http2 include insecure ipv4 ipv6 location no-buffer no-keepalive no-progress-meter
			progress-bar show-error silent tlsv1.2 tlsv1.3 verbose`,
		noted: "connect-timeout max-time output retry write-out",
	} {
		for name := range strings.FieldsSeq(names) {
			all[name] = kind
		}
	}
	return all
}()

type command struct {
	text  string
	words []word // remaining words
	sent  httpapi.CurlRequest

	url     *word
	flags   map[string]bool
	last    map[string]word // values of options that can be overridden
	headers []word
	cookies []string
	body    strings.Builder
	data    *word // first option that adds to the body; nil for no body
	json    bool
}

// Read parses a curl command line in the syntax of bash. Its errors are [requesttext.Error].
func Read(text string) (httpapi.CurlRequest, error) {
	if err := requesttext.CheckText(text); err != nil {
		return httpapi.CurlRequest{}, err
	}
	text = strings.ReplaceAll(text, "\r\n", "\n")
	words, notes, err := splitWords(text)
	if err != nil {
		return httpapi.CurlRequest{}, err
	}
	c := command{text: text, words: words, flags: map[string]bool{}, last: map[string]word{}}
	for _, n := range notes {
		c.note(n)
	}
	for _, step := range []func() error{c.skipProgram, c.readArguments, c.makeRequest} {
		if err := step(); err != nil {
			return httpapi.CurlRequest{}, err
		}
	}
	return c.sent, nil
}

func (c *command) note(s string) {
	if !slices.Contains(c.sent.Notes, s) {
		c.sent.Notes = append(c.sent.Notes, s)
	}
}

func (c *command) errorAt(w word, reason, hint string) error {
	return requesttext.ErrorAt(c.text, w.at, reason, hint)
}

func (c *command) next() word {
	w := c.words[0]
	c.words = c.words[1:]
	return w
}

// skipProgram skips the program name and a leading prompt or sudo.
func (c *command) skipProgram() error {
	for len(c.words) > 0 {
		w := c.next()
		switch name := path.Base(w.text); {
		case name == "curl" || name == "curl.exe":
			return nil
		case w.text != "$" && name != "sudo":
			return c.errorAt(w, "this is not a curl command", "begin it with curl")
		}
	}
	return requesttext.ErrorAt(c.text, 0, "no curl command given", "")
}

func (c *command) readArguments() error {
	for onlyURLs := false; len(c.words) > 0; {
		var err error
		switch w := c.next(); {
		case onlyURLs || !strings.HasPrefix(w.text, "-") || w.text == "-":
			err = c.readURL(w)
		case w.text == "--":
			onlyURLs = true
		case strings.HasPrefix(w.text, "--"):
			err = c.readOption(w, w.text[2:], nil)
		default:
			err = c.readLetters(w)
		}
		if err != nil {
			return err
		}
	}
	if c.url == nil {
		return requesttext.ErrorAt(c.text, len(strings.TrimRight(c.text, " \t\r\n")), "the command has no URL", "")
	}
	return nil
}

func (c *command) readURL(w word) error {
	if c.url != nil {
		return c.errorAt(w, "this is a second URL", "explain one request at a time; put values with spaces in quotes")
	}
	c.url = &w
	return nil
}

// readLetters parses short options, which may share one word, such as -sSXPOST.
func (c *command) readLetters(w word) error {
	for i := 1; i < len(w.text); i++ {
		name, ok := letters[w.text[i]]
		if !ok {
			return c.errorAt(w, fmt.Sprintf("curl option -%c is not supported", []rune(w.text[i:])[0]), "remove it")
		}
		if takesValue(name) && i+1 < len(w.text) {
			return c.readOption(w, name, &word{w.text[i+1:], w.at})
		}
		if err := c.readOption(w, name, nil); err != nil {
			return err
		}
	}
	return nil
}

func takesValue(name string) bool { return options[name] == value || options[name] == noted }

// readOption parses a long option. Its value is v or, if v is nil, the next word.
func (c *command) readOption(w word, name string, v *word) error {
	kind := options[name]
	if positive, no := strings.CutPrefix(name, "no-"); no && kind == unread && (options[positive] == flag || options[positive] == harmless) {
		delete(c.flags, positive)
		return nil
	}
	if takesValue(name) && v == nil {
		if len(c.words) == 0 {
			return c.errorAt(w, fmt.Sprintf("the value of --%s is missing", name), "")
		}
		next := c.next()
		v = &next
	}
	switch {
	case name == "next":
		return c.errorAt(w, "explain one request at a time", "remove everything from --next on")
	case kind == unread:
		name, _, assigned := strings.Cut(name, "=") // the value may be secret
		hint := "remove it"
		if assigned && options[name] != unread {
			hint = "write the option and its value as two words"
		} else if near := spell.Nearest(name, slices.Sorted(maps.Keys(options))); near != "" {
			hint = fmt.Sprintf("did you mean --%s?", near)
		}
		return c.errorAt(w, fmt.Sprintf("curl option --%s is not supported", requesttext.Shorten(name)), hint)
	case kind == flag:
		c.flags[name] = true
	case kind == noted:
		c.note(fmt.Sprintf("ignored: --%s %s", name, requesttext.Shorten(v.text)))
	case name == "url":
		return c.readURL(*v)
	case name == "header" && strings.HasPrefix(v.text, "@"):
		return c.errorAt(*v, "header files are not supported", "write them here")
	case name == "header":
		c.headers = append(c.headers, *v)
	case name == "cookie" && !strings.Contains(v.text, "="):
		c.note("ignored: --cookie with a file name")
	case name == "cookie":
		c.cookies = append(c.cookies, v.text)
	case name == "json" || strings.HasPrefix(name, "data"):
		return c.readData(w, name, *v)
	case kind == value:
		c.last[name] = *v
	}
	return nil
}

func (c *command) readData(w word, name string, v word) error {
	text, file := v.text, name != "data-raw" && strings.HasPrefix(v.text, "@")
	if name == "data-urlencode" {
		field, content, named := strings.Cut(text, "=")
		switch file = strings.Contains(field, "@"); {
		case !named:
			text = url.QueryEscape(text)
		case field == "":
			text = url.QueryEscape(content)
		default:
			text = field + "=" + url.QueryEscape(content)
		}
	}
	if file {
		return c.errorAt(v, "data files are not supported", "write the data here, with --data-raw if it begins with @, or remove the option")
	}
	if c.data == nil {
		c.data = &w
	} else if name != "json" {
		c.body.WriteByte('&')
	}
	c.json = c.json || name == "json"
	c.body.WriteString(text)
	return nil
}
