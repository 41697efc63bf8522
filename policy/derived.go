// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/metehq/mete/internal/parse"
)

// Facts supplies attributes that follow from other attributes: ip:country, ip:asn and ip:tor from ip:address, and ua:bot
// from header:user-agent. The zero Facts supplies none.
type Facts struct {
	// Find returns the value of a. from is the value of the other attribute: an address without an IPv4-mapped prefix,
	// or a user agent. Find returns false for an attribute or a value that it does not know. It must be safe for
	// concurrent use. Its values:
	//
	//   - ip:country: a country code of ISO 3166-1 in upper case, such as DE.
	//   - ip:asn: the number of an autonomous system, such as 64500.
	//   - ip:tor and ua:bot: true or false.
	Find func(a Attribute, from string) (value string, ok bool)

	// Check, if not nil, returns an error with the remedy if Find has no data for a. A policy or an override that
	// reads a is then invalid. Without Check, a is missing.
	Check func(a Attribute) error
}

// derived are the attributes that follow from another attribute.
var derived = []struct {
	source Source
	name   string
	from   string // the other attribute
	plain  string // a typical value
}{
	{SourceNetwork, "country", "ip:address", "DE"},
	{SourceNetwork, "asn", "ip:address", "64500"},
	{SourceNetwork, "tor", "ip:address", "true"},
	{SourceAgent, "bot", "header:user-agent", "true"},
}

func isDerived(source Source, name string) bool {
	for _, d := range derived {
		if d.source == source && d.name == name {
			return true
		}
	}
	return false
}

// DerivedFrom returns the attribute that a follows from, such as ip:address for ip:country. It returns false for an
// attribute that follows from no other.
func (a Attribute) DerivedFrom() (from Attribute, ok bool) {
	for _, d := range derived {
		if d.source == a.Source && d.name == a.Name {
			from, err := parseAttribute(d.from)
			return from, err == nil
		}
	}
	return Attribute{}, false
}

func parseDerived(s string, source Source, word, name string) (Attribute, *attributeError) {
	name = strings.ToLower(name)
	if !isDerived(source, name) {
		return Attribute{}, &attributeError{s, "the only attribute of the user agent is ua:bot",
			"match header:user-agent by prefix, or use a header that only your CDN or proxy can set, such as header:x-bot-category"}
	}
	return Attribute{Source: source, Name: name, text: word + ":" + name}, nil
}

// checkFact reports an error at n if a follows from another attribute and has no data. It returns false in that case.
func (c *compiler) checkFact(n *parse.Node, a Attribute) bool {
	if c.matcher.facts.Check == nil || a.Source != SourceNetwork && a.Source != SourceAgent {
		return true
	}
	err := c.matcher.facts.Check(a)
	if err != nil {
		c.AddAt(n, fmt.Sprintf("%v has no data", a), err.Error())
	}
	return err == nil
}

// readDerivedValue returns the text of a match value for a derived attribute as [Facts] returns it. A star is the only
// prefix.
func (c *compiler) readDerivedValue(a Attribute, n *parse.Node, text string, star bool) (string, bool) {
	if star {
		if text != "" {
			c.Add(n, fmt.Sprintf("%v has no prefixes", a), "list the values, or write * for any value")
		}
		return "", text == ""
	}
	switch a.Name {
	case "country":
		if text = strings.ToUpper(text); len(text) == 2 && isLetter(text[0]) && isLetter(text[1]) {
			return text, true
		}
		c.Add(n, "ip:country is a country code of two letters", "as in DE or US")
	case "asn":
		number := text
		if len(text) > 2 && strings.EqualFold(text[:2], "AS") {
			number = text[2:]
		}
		if asn, err := strconv.ParseUint(number, 10, 32); err == nil && asn > 0 && strconv.FormatUint(asn, 10) == number {
			return number, true
		}
		c.Add(n, "ip:asn is the number of an autonomous system, from 1 to 4294967295", "as in 64500 or AS64500")
	default:
		if text == "true" || text == "false" {
			return text, true
		}
		c.Add(n, fmt.Sprintf("%v is either true or false", a), "")
	}
	return "", false
}

func isLetter(c byte) bool { return 'A' <= c && c <= 'Z' }

// derive looks up the fact that another attribute implies, if the request does not have it.
func (m *Matcher) derive(s *scratch, f *fact, slot int) {
	if from := m.fact(s, m.from[slot]-1); from.present {
		f.value, f.present = m.facts.Find(m.attributes[slot], from.text())
	}
	if !f.present {
		f.value = ""
	}
}

// text returns the value of f. An address is in its shortest form, without an IPv4-mapped prefix.
func (f *fact) text() string {
	if !f.addr.IsValid() {
		return f.value
	}
	var room [64]byte
	if short := f.addr.AppendTo(room[:0]); string(short) != f.value {
		return string(short)
	}
	return f.value
}
