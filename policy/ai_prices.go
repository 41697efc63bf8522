// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/parse"
)

// maxModels bounds the models of a price list.
const maxModels = 1000

// millionTokens is the number of tokens that a price is for.
const millionTokens = 1_000_000

// Prices are the prices of models for a million tokens of each class. They are immutable.
type Prices struct {
	version, date, unit string // for people; date and unit may be empty

	exact   map[string]*weights
	prefix  []pricePrefix // the longest first
	highest weights       // of every class: the price of an unknown model
}

// Version returns the version, which is any text.
func (p *Prices) Version() string { return p.version }

// Date returns the day on which the prices were written, such as "2026-11-01", or "".
func (p *Prices) Date() string { return p.date }

// String returns the version and the date, or "" without prices.
func (p *Prices) String() string {
	switch {
	case p == nil:
		return ""
	case p.date == "" || p.date == p.version:
		return p.version
	}
	return p.version + " of " + p.date
}

// showPrices shows a hash of the prices, too: they can change without a new version.
func (l *Limit) showPrices() (string, bool) {
	if !l.Money() {
		return "", false
	}
	p := l.cost.ai.prices
	h := sha256.New()
	fmt.Fprintln(h, p.unit)
	for _, model := range slices.Sorted(maps.Keys(p.exact)) {
		fmt.Fprintf(h, "%q %v\n", model, *p.exact[model])
	}
	for _, prefix := range p.prefix {
		fmt.Fprintf(h, "%q* %v\n", prefix.text, *prefix.prices)
	}
	return fmt.Sprintf("%v, hash %x", p, h.Sum(nil)[:4]), false
}

// ReadPrices reads a file with prices in JSON of at most [MaxFileBytes], for [Options].Prices. It reports all errors together,
// as [Errors].
func ReadPrices(data []byte) (*Prices, error) {
	c := &compiler{Report: &parse.Report{}}
	var p *Prices
	if root := c.Parse(data, MaxFileBytes); root != nil {
		p = c.readPriceList(root)
	}
	if err := c.errors(); err != nil {
		return nil, err
	}
	return p, nil
}

type pricePrefix struct {
	text   string
	prices *weights
}

// find returns the prices of a model. A model without an entry has the highest prices of the list.
func (p *Prices) find(model string) *weights {
	if w := p.lookup(model); w != nil {
		return w
	}
	return &p.highest
}

// lookup returns the prices of a model, or nil.
func (p *Prices) lookup(model string) *weights {
	if w := p.exact[model]; w != nil {
		return w
	}
	for i := range p.prefix {
		if strings.HasPrefix(model, p.prefix[i].text) {
			return p.prefix[i].prices
		}
	}
	return nil
}

// Prices returns the prices of the policy, or nil.
func (m *Matcher) Prices() *Prices { return m.prices }

// readPrices reads the prices at the top of a file, before its rules.
func (c *compiler) readPrices(n *parse.Node) {
	switch {
	case n == nil:
		return
	case n.Kind == parse.KindObject && n.Field("file") != nil:
		c.prices = c.readPriceFile(n)
	default:
		c.prices = c.readPriceList(n)
	}
	c.pricesBad = c.prices == nil
	c.matcher.prices = c.prices
}

// readPriceFile reads prices from a file of their own. It returns nil if they have errors.
func (c *compiler) readPriceFile(n *parse.Node) *Prices {
	o := c.Object(n, priceFileTable)
	if o == nil {
		return nil
	}
	f := o.Field("file")
	name, ok := c.String(f, "file", maxPriceFile)
	switch {
	case !ok:
		return nil
	case c.readFrom == nil:
		c.Add(f, "a policy from this place cannot read another file", "write the prices into the policy; Go programs can set policy.Options.Prices")
		return nil
	}
	p, err := c.readFrom(name)
	if err != nil {
		c.AddAt(f, fmt.Sprintf("the prices cannot be used: %v", err), "")
		return nil
	}
	return p
}

// maxPriceFile bounds the name of a file with prices.
const maxPriceFile = 4096

// readPriceList returns nil if the prices have errors.
func (c *compiler) readPriceList(n *parse.Node) *Prices {
	o := c.Object(n, pricesTable)
	if o == nil {
		return nil
	}
	p := &Prices{exact: map[string]*weights{}, highest: weights{per: millionTokens}}
	ok := true
	if f := o.Require("version", `the version of the prices, as in "2026-11-01"`); f != nil {
		p.version, ok = c.String(f, "version", MaxNameBytes)
	}
	if f := o.Field("unit"); f != nil {
		p.unit, _ = c.String(f, "unit", MaxNameBytes)
	}
	if f := o.Field("date"); f != nil {
		p.date = f.Text
		if _, err := time.Parse(time.DateOnly, f.Text); f.Kind != parse.KindText || err != nil {
			c.Add(f, "date must be the day on which the prices were written", `as in "2026-11-01"`)
			ok = false
		}
	}
	models := o.Require("models", `the prices of a million tokens, as in {"gpt-4o": {"input": 250, "output": 1000}}`)
	if models == nil {
		return nil
	}
	if models.Kind != parse.KindObject || len(models.Fields) == 0 || len(models.Fields) > maxModels {
		c.Add(models, fmt.Sprintf("models must be an object with 1 to %d models", maxModels), `as in {"gpt-4o": {"input": 250, "output": 1000}}`)
		return nil
	}
	for i := range models.Fields {
		f := &models.Fields[i]
		w := &weights{per: millionTokens}
		if !c.readWeights(f.Value, w) {
			ok = false
			continue
		}
		p.add(f.Name, w)
	}
	if !ok {
		return nil
	}
	return p
}

func (p *Prices) add(model string, w *weights) {
	h := &p.highest
	for _, class := range []struct{ to, from *bucket.Tokens }{
		{&h.input, &w.input}, {&h.cached, &w.cached}, {&h.write, &w.write}, {&h.output, &w.output}, {&h.reasoning, &w.reasoning},
	} {
		*class.to = max(*class.to, *class.from)
	}
	text, prefix := strings.CutSuffix(model, "*")
	if !prefix {
		p.exact[model] = w
		return
	}
	at := 0
	for at < len(p.prefix) && len(p.prefix[at].text) >= len(text) {
		at++
	}
	p.prefix = append(p.prefix[:at], append([]pricePrefix{{text, w}}, p.prefix[at:]...)...)
}
