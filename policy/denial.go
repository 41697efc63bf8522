// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"hash/crc32"

	"github.com/metehq/mete/internal/denialbody"
	"github.com/metehq/mete/internal/parse"
)

// readDenial reads the response to requests that a rule denies.
func (c *compiler) readDenial(d *draft, n *parse.Node) {
	o := c.Object(n, denialTable)
	if o == nil {
		return
	}
	before := c.Count()
	a := &denialbody.Answer{}
	format, body, contentType := o.Field("format"), o.Field("body"), o.Field("content_type")
	if f := o.Field("status"); f != nil {
		a.Status = c.readDenialStatus(f)
	}
	switch {
	case format != nil && body != nil:
		c.Add(format, "a denial has either format or body, not both", "remove one of them")
	case format != nil && contentType != nil:
		c.Add(contentType, "a format has its own content_type", "remove it, or write a body")
	case format != nil:
		if i := c.Choice(format, "format", denialbody.Formats, nil); i >= 0 {
			a.Format = denialbody.Formats[i]
		}
	case body != nil:
		a.Body = c.readDenialBody(body, contentType)
	case contentType != nil:
		c.Add(contentType, "content_type requires a body", "add body")
	case a.Status != 0:
		a.Format = denialbody.FormatProblem
	case c.Count() == before && !o.HasMisspelled():
		c.AddAt(n, "denial is empty", `write {"format": "openai"}, or a status or a body`)
	}
	if c.Count() == before {
		d.Denial = a
	}
}

func (c *compiler) readDenialStatus(n *parse.Node) int {
	status, ok := c.Whole(n, "status", denialbody.MinStatus, denialbody.MaxStatus)
	if !ok {
		return 0
	}
	if err := denialbody.CheckStatus(status); err != nil {
		c.addDenialError(n, err)
	}
	return status
}

func (c *compiler) readDenialBody(body, contentType *parse.Node) *denialbody.Template {
	text, ok := c.String(body, "body", denialbody.MaxBodyBytes)
	media := ""
	if contentType != nil {
		var typed bool
		media, typed = c.String(contentType, "content_type", denialbody.MaxContentTypeBytes)
		if typed && media == "" {
			c.Add(contentType, "content_type must not be empty", "")
		}
		ok = ok && typed
	}
	if !ok {
		return nil
	}
	t, err := denialbody.Parse(text, media)
	if e, isError := err.(*denialbody.Error); isError && e.ContentType {
		c.addDenialError(contentType, err)
	} else if err != nil {
		c.addDenialError(body, err)
	}
	return t
}

func (c *compiler) addDenialError(n *parse.Node, err error) {
	hint := ""
	if e, ok := err.(*denialbody.Error); ok {
		hint = e.Hint
	}
	c.Add(n, err.Error(), hint)
}

func (r *Rule) showDenial() (string, bool) {
	a := r.Denial
	if a == nil {
		return "", false
	}
	text := a.Format
	if a.Body != nil {
		text = a.Body.ContentType + " " + parse.FormatValue(&parse.Node{Kind: parse.KindText, Text: a.Body.Source})
		if len(a.Body.Source) > parse.MaxShownBytes { // programs compare facts
			text += fmt.Sprintf(" (%d bytes, %08x)", len(a.Body.Source), crc32.ChecksumIEEE([]byte(a.Body.Source)))
		}
	}
	if a.Status != 0 {
		text = fmt.Sprintf("%d, %s", a.Status, text)
	}
	return text, true
}
