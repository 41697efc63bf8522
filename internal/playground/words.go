// SPDX-License-Identifier: Apache-2.0

package playground

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/prose"
)

// words explain the result in sentences: how many requests are allowed, why the first one is
// denied, and what follows from it.
func (p *play) words(r *api.PlayLaneResult) (w []string) {
	t, l, owes := &r.Totals, p.limit.Bucket, tokens(bucket.Tokens(r.Owes))
	if t.Sent == 0 {
		return []string{"No request comes: the bucket stays full."}
	}
	say := func(format string, args ...any) { w = append(w, fmt.Sprintf(format, args...)) }
	if t.Never > 0 {
		d := p.decisions[slices.IndexFunc(p.decisions, func(d decided) bool { return d.RetryAfter == bucket.Never })]
		say("A request that costs %s can never be allowed: the limit has room for %s. So it is not told to come back.",
			amount(d.Cost), amount(l.Capacity()+bucket.Tokens(r.Owes)))
	}
	if t.Delayed > 0 {
		i := slices.IndexFunc(p.decisions, func(d decided) bool { return d.Wait > 0 })
		d := &p.decisions[i]
		say("Request %s at %s is the first that has to wait: it is allowed, and starts %s later. In all, %s wait, up to %s.",
			count(i+1), span(micros(d.At)), span(api.Seconds(d.Wait)), requests(t.Delayed), span(t.LongestWait))
	}
	switch f := r.FirstDenial; {
	case f == nil && t.Delayed > 0:
		say("No request is denied: the queue has room for %s, and that is enough.", owes)
	case f == nil:
		say("%s", p.noDenialWords(r))
	case f.RetryAfter != api.Seconds(bucket.Never):
		say("The first denial is request %s at %s: %s It is told to come back in %s.", count(f.Request), span(f.At), p.denialWords(f), span(f.RetryAfter))
	}
	if t.Denied > 0 && t.Allowed > 0 {
		s := fmt.Sprintf("In all, %s of %s got in (%s %%)", count(t.Allowed), requests(t.Sent), strconv.FormatFloat(t.Share*100, 'f', 1, 64))
		if l.Algorithm() == bucket.Continuous || l.Algorithm() == bucket.Stepped {
			s += fmt.Sprintf(". They spend %s: the bucket has %s, and gets %s", tokens(bucket.Tokens(t.Spent)), amount(l.Capacity()), prose.Rate(l))
		}
		say("%s.", s)
	}
	n, _ := bucket.ParseTokens(string(p.Tokens)) // which compile has checked
	if peak := bucket.Tokens(t.Peak); peak > n {
		say("In the busiest %s, from %s on, %s are spent: %s times the %s that come in that time.",
			span(r.Window), span(t.PeakAt), tokens(peak), number(math.Round(float64(peak)/float64(n)*100)/100), amount(n))
	}
	if p.writer != nil && t.Denied > 0 {
		w = append(w, p.retryWords(t))
	}
	return w
}

// noDenialWords explain why all requests are allowed.
func (p *play) noDenialWords(r *api.PlayLaneResult) string {
	least, at := bucket.Tokens(r.Capacity), bucket.Instant(0)
	for _, d := range p.decisions {
		if d.Level < least {
			least, at = d.Level, d.At
		}
	}
	s := fmt.Sprintf("All %s are allowed. At %s the bucket has %s left, and never less.", requests(len(p.decisions)), span(micros(at)), tokens(least))
	if len(p.decisions) == 1 {
		s = "The request is allowed" + strings.TrimPrefix(s, "All 1 request are allowed")
	}
	if p.full <= p.end {
		s += fmt.Sprintf(" It is full again at %s.", span(micros(p.full)))
	}
	return s
}

// denialWords explain the first denial: the tokens that were spent, the tokens that came back, and
// the rest.
func (p *play) denialWords(f *api.PlayFirstDenial) string {
	d, l := &p.decisions[f.Request-1], p.limit.Bucket
	if f.Before == 0 {
		return fmt.Sprintf("it costs %s, and there is only %s.", amount(d.Cost), tokens(max(d.Level, 0)))
	}
	before := fmt.Sprintf("the %s before it", count(f.Before))
	if f.Before == 1 {
		before = "the one before it"
	}
	spent := bucket.Tokens(0)
	for _, earlier := range p.decisions[:f.Request-1] {
		spent += earlier.Cost // all of them were allowed
	}
	back := spent + d.Level - l.Capacity() // since the beginning
	switch {
	case l.Queued():
		return fmt.Sprintf("%s are waiting, and the queue has room for no more than %s.", tokens(-d.Level), tokens(l.MaxReserved()))
	case l.Algorithm() == bucket.SlidingWindow || l.Algorithm() == bucket.SlidingLog:
		return fmt.Sprintf("%s spent %s, and a window of %s has no more than %s.", before, tokens(spent), span(api.Seconds(p.per)), amount(l.Capacity()))
	case back <= 0:
		return fmt.Sprintf("%s spent %s of the %s at the start, and nothing has come back yet.", before, amount(spent), tokens(l.Capacity()))
	}
	return fmt.Sprintf("%s spent %s of the %s at the start and the %s that came back. The %s left is less than the %s it costs.",
		before, amount(spent), tokens(l.Capacity()), amount(back), amount(d.Level), amount(d.Cost))
}

// retryWords report on the clients that came back.
func (p *play) retryWords(t *api.PlayTotals) string {
	most, served := 1, 0
	for _, d := range p.decisions {
		if d.Allowed && d.Try > 1 {
			served++
			most = max(most, d.Try)
		}
	}
	s := fmt.Sprintf("Denied clients come back when told: %s got in at a later attempt, the last of them at attempt %s, and up to %s came at one instant.",
		count(served), count(most), count(t.Crowd))
	if t.Unserved > 0 {
		s += fmt.Sprintf(" %s would come back after the end.", count(t.Unserved))
	}
	return s
}

// limitWords describe the limit and the cost of a request.
func (p *play) limitWords() string {
	s := prose.Limit(p.limit)
	if p.Cost != "" && p.Cost != "1" {
		s += "; a request costs " + string(p.Cost)
	}
	return s
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }

func tokens(t bucket.Tokens) string {
	if t == bucket.Token {
		return "1 token"
	}
	return amount(t) + " tokens"
}

func requests(n int) string {
	if n == 1 {
		return "1 request"
	}
	return count(n) + " requests"
}

// amount writes an amount with separators between thousands.
func amount(t bucket.Tokens) string {
	whole, rest, decimals := strings.Cut(t.String(), ".")
	n, err := strconv.Atoi(whole)
	if err != nil || !decimals {
		return count(n)
	}
	return count(n) + "." + rest
}

// count writes a number with separators between thousands.
func count(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// span writes a time: 16.667 ms, 2.5 s, 1h30m.
func span(s api.Seconds) string {
	switch d := time.Duration(s); {
	case d > 0 && d < time.Millisecond:
		return number(float64(d)/1e3) + " µs"
	case d > 0 && d < 100*time.Millisecond:
		return number(float64(d)/1e6) + " ms"
	case d < 2*time.Minute:
		return strconv.FormatFloat(math.Round(d.Seconds()*1000)/1000, 'f', -1, 64) + " s"
	default:
		return prose.Duration(d.Round(time.Millisecond))
	}
}
