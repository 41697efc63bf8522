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
)

// words explain what happened, a sentence or two each: what was let through and why it
// came to an end, what the rest was told, and what that comes to.
func (p *play) words(r *api.PlayLaneResult) []string {
	t := &r.Totals
	if t.Sent == 0 {
		return []string{"No request comes: the bucket stays full."}
	}
	var w []string
	if t.Never > 0 {
		d := p.decisions[slices.IndexFunc(p.decisions, func(d decided) bool { return d.RetryAfter == bucket.Never })]
		w = append(w, fmt.Sprintf("A request that costs %s can never be allowed: the limit has room for %s. So it is not told to come back.",
			amount(d.Cost), amount(p.limit.Bucket.Capacity()+bucket.Tokens(r.Owes))))
	}
	if t.Delayed > 0 {
		w = append(w, p.delayWords(t))
	}
	switch {
	case r.FirstDenial == nil && t.Delayed > 0:
		w = append(w, fmt.Sprintf("Nobody is denied: the queue has room for %s, and that is enough.", tokens(bucket.Tokens(r.Owes))))
	case r.FirstDenial == nil:
		w = append(w, p.noDenialWords(r))
	case r.FirstDenial.RetryAfter != api.Seconds(bucket.Never):
		w = append(w, p.denialWords(r.FirstDenial))
	}
	if t.Denied > 0 && t.Allowed > 0 {
		w = append(w, p.shareWords(r))
	}
	if s := p.peakWords(r); s != "" {
		w = append(w, s)
	}
	if p.writer != nil && t.Denied > 0 {
		w = append(w, p.retryWords(t))
	}
	return w
}

// noDenialWords explain why there was enough.
func (p *play) noDenialWords(r *api.PlayLaneResult) string {
	least := bucket.Tokens(r.Capacity)
	at := bucket.Instant(0)
	for _, d := range p.decisions {
		if d.Level < least {
			least, at = d.Level, d.At
		}
	}
	s := fmt.Sprintf("All %s are allowed", requests(len(p.decisions)))
	if len(p.decisions) == 1 {
		s = "The request is allowed"
	}
	if least == 0 {
		s += fmt.Sprintf(", though the bucket is empty at %s.", span(micros(at)))
	} else {
		s += fmt.Sprintf(". At %s the bucket has %s left, and never less.", span(micros(at)), tokens(least))
	}
	if p.full <= p.end {
		s += fmt.Sprintf(" It is full again at %s.", span(micros(p.full)))
	}
	return s
}

// denialWords explain the first denial: what has been spent by then, and where it came
// from.
func (p *play) denialWords(f *api.PlayFirstDenial) string {
	d := &p.decisions[f.Request-1]
	l := p.limit.Bucket
	spent := bucket.Tokens(0)
	for _, earlier := range p.decisions[:f.Request-1] {
		spent += earlier.Cost // all of them were allowed
	}
	first := fmt.Sprintf("The first denial is request %s at %s", count(f.Request), span(f.At))
	told := fmt.Sprintf(" It is told to come back in %s.", span(f.RetryAfter))
	if f.Before == 0 {
		return first + fmt.Sprintf(": it costs %s, and there is only %s.", amount(d.Cost), tokens(max(d.Level, 0))) + told
	}
	before := fmt.Sprintf("the %s before it", count(f.Before))
	if f.Before == 1 {
		before = "the one before it"
	}
	back := spent + d.Level - l.Capacity() // what has come back since the beginning
	switch {
	case l.Queued():
		return first + fmt.Sprintf(": %s are waiting, and the queue has room for no more than %s.", tokens(-d.Level), tokens(l.MaxReserved())) + told
	case l.Algorithm() == bucket.SlidingWindow || l.Algorithm() == bucket.SlidingLog:
		return first + fmt.Sprintf(": %s spent %s, and a window of %s has no more than %s.",
			before, tokens(spent), span(api.Seconds(p.per)), amount(l.Capacity())) + told
	case back <= 0:
		return first + fmt.Sprintf(": %s spent %s, and nothing has come back yet.", before, all(spent, l.Capacity())) + told
	case spent <= l.Capacity():
		return first + fmt.Sprintf(": %s spent %s, and %s came back since. The %s there is less than the %s it costs.",
			before, all(spent, l.Capacity()), amount(back), amount(d.Level), amount(d.Cost)) + told
	case d.Level > 0:
		return first + fmt.Sprintf(": %s spent the %s there were and %s of the %s that came back meanwhile. The %s left is less than the %s it costs.",
			before, tokens(l.Capacity()), amount(back-d.Level), amount(back), amount(d.Level), amount(d.Cost)) + told
	}
	return first + fmt.Sprintf(": %s spent the %s there were and the %s that came back meanwhile.", before, tokens(l.Capacity()), amount(back)) + told
}

// all says how much of the capacity was spent.
func all(spent, capacity bucket.Tokens) string {
	if spent == capacity {
		return "all " + tokens(spent)
	}
	return fmt.Sprintf("%s of the %s", amount(spent), tokens(capacity))
}

// delayWords explain what a queue does.
func (p *play) delayWords(t *api.PlayTotals) string {
	i := slices.IndexFunc(p.decisions, func(d decided) bool { return d.Wait > 0 })
	d := &p.decisions[i]
	s := fmt.Sprintf("Request %s at %s is the first that has to wait: it is allowed, and starts %s later", count(i+1), span(micros(d.At)), span(api.Seconds(d.Wait)))
	if t.Delayed == 1 {
		return s + fmt.Sprintf(", when the %s that the bucket owes have come.", tokens(-d.Level))
	}
	return s + fmt.Sprintf(". In all %s wait, up to %s.", count(t.Delayed), span(t.LongestWait))
}

// shareWords sum up.
func (p *play) shareWords(r *api.PlayLaneResult) string {
	t := &r.Totals
	s := fmt.Sprintf("In all, %s of %s got in (%s)", count(t.Allowed), requests(t.Sent), percent(t.Share))
	if l := p.limit.Bucket; l.Algorithm() == bucket.Continuous || l.Algorithm() == bucket.Stepped {
		s += fmt.Sprintf(". They spend %s: the bucket has %s, and gets %s", tokens(bucket.Tokens(t.Spent)), amount(l.Capacity()), p.rateWords())
	}
	return s + "."
}

// rateWords say the rate.
func (p *play) rateWords() string {
	n, _ := bucket.ParseTokens(string(p.Tokens)) // which has been read before
	switch p.per {
	case time.Second:
		return amount(n) + " a second"
	case time.Minute:
		return amount(n) + " a minute"
	case time.Hour:
		return amount(n) + " an hour"
	case 24 * time.Hour:
		return amount(n) + " a day"
	}
	return amount(n) + " every " + span(api.Seconds(p.per))
}

// limitWords say the limit.
func (p *play) limitWords() string {
	l := p.limit.Bucket
	n, _ := bucket.ParseTokens(string(p.Tokens))
	s := p.rateWords()
	switch {
	case p.Algorithm == "leaky_bucket":
		s += ", queue " + amount(l.MaxReserved())
		if l.Capacity() != bucket.Token {
			s += ", capacity " + amount(l.Capacity())
		}
	case l.Algorithm() == bucket.Continuous:
		s += ", capacity " + amount(l.Capacity())
	case p.Algorithm == "token_bucket":
		s = fmt.Sprintf("%s at once every %s, capacity %s", amount(n), span(api.Seconds(p.per)), amount(l.Capacity()))
	case l.Algorithm() == bucket.Stepped:
		s = fmt.Sprintf("%s in each %s", amount(n), span(api.Seconds(p.per)))
		if l.Capacity() != n {
			s += ", capacity " + amount(l.Capacity())
		}
	default:
		s = fmt.Sprintf("%s in any %s", amount(n), span(api.Seconds(p.per)))
	}
	if p.Cost != "" && p.Cost != "1" {
		cost, _ := bucket.ParseTokens(string(p.Cost))
		s += "; a request costs " + amount(cost)
	}
	return s
}

// peakWords point at windows in which more begins than the rate says.
func (p *play) peakWords(r *api.PlayLaneResult) string {
	n, err := bucket.ParseTokens(string(p.Tokens))
	if peak := bucket.Tokens(r.Totals.Peak); err == nil && peak > n {
		return fmt.Sprintf("In the busiest %s, from %s on, %s are spent: %s the %s that come in that time.",
			span(r.Window), span(r.Totals.PeakAt), tokens(peak), times(float64(peak)/float64(n)), amount(n))
	}
	return ""
}

// retryWords say how those fared who came back.
func (p *play) retryWords(t *api.PlayTotals) string {
	most, served := 1, 0
	for _, d := range p.decisions {
		if d.Allowed && d.Try > 1 {
			served++
			most = max(most, d.Try)
		}
	}
	s := fmt.Sprintf("Who is denied comes back when told: %s got in at a later attempt, the last of them at attempt %s, and up to %s came at one instant.",
		count(served), count(most), count(t.Crowd))
	if t.Unserved > 0 {
		s += fmt.Sprintf(" %s would come back after the end.", count(t.Unserved))
	}
	return s
}

func times(x float64) string {
	if math.Abs(x-2) < 0.005 {
		return "twice"
	}
	return number(math.Round(x*100)/100) + " times"
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }

func percent(share float64) string { return strconv.FormatFloat(share*100, 'f', 1, 64) + " %" }

// tokens counts tokens.
func tokens(t bucket.Tokens) string {
	if t == bucket.Token {
		return "1 token"
	}
	return amount(t) + " tokens"
}

// amount writes an amount with separators between thousands.
func amount(t bucket.Tokens) string {
	whole, rest, decimals := strings.Cut(t.String(), ".")
	n, err := strconv.Atoi(whole)
	if err != nil {
		return t.String()
	}
	whole = count(n)
	if decimals {
		whole += "." + rest
	}
	return whole
}

func requests(n int) string {
	if n == 1 {
		return "1 request"
	}
	return count(n) + " requests"
}

// count writes a number with separators between thousands.
func count(n int) string {
	if n < 0 {
		return "−" + count(-n)
	}
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// span writes a time as people say it: 16.667 ms, 2.5 s, 1h 30m.
func span(s api.Seconds) string {
	d := time.Duration(s)
	switch {
	case d == 0:
		return "0 s"
	case d < time.Millisecond:
		return number(float64(d)/1e3) + " µs"
	case d < 100*time.Millisecond:
		return number(float64(d)/1e6) + " ms"
	case d < 2*time.Minute:
		return strconv.FormatFloat(math.Round(d.Seconds()*1000)/1000, 'f', -1, 64) + " s"
	}
	d = d.Round(time.Millisecond)
	var parts []string
	for _, unit := range []struct {
		length time.Duration
		name   string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "m"}} {
		if n := d / unit.length; n > 0 {
			parts = append(parts, strconv.Itoa(int(n))+unit.name)
			d -= n * unit.length
		}
	}
	if d > 0 {
		parts = append(parts, strconv.FormatFloat(d.Seconds(), 'f', -1, 64)+"s")
	}
	return strings.Join(parts, " ")
}
