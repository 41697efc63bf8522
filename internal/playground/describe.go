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

// describe explains the result in sentences: how many requests are allowed, why the first one is denied, and what follows
// from it.
func (p *play) describe(r *api.PlayLaneResult) (sentences []string) {
	t, l, owes := &r.Totals, p.limit.Bucket, formatTokens(bucket.Tokens(r.Owes))
	if t.Sent == 0 {
		if p.Algorithm == concurrency {
			return []string{"There are no requests: all slots are free."}
		}
		return []string{"There are no requests: the bucket stays full."}
	}
	add := func(format string, args ...any) { sentences = append(sentences, fmt.Sprintf(format, args...)) }
	if t.Never > 0 {
		d := p.decisions[slices.IndexFunc(p.decisions, func(d decision) bool { return d.RetryAfter == bucket.Never })]
		add("A request that costs %s is never allowed: the limit is %s. The answer has no Retry-After.",
			formatTokens(d.Cost), formatAmount(l.Capacity()+bucket.Tokens(r.Owes)))
	}
	if t.Delayed > 0 {
		i := slices.IndexFunc(p.decisions, func(d decision) bool { return d.Wait > 0 })
		d := &p.decisions[i]
		add("Request %s at %s is the first to wait: it is allowed and starts %s later. In total, %s, up to %s.",
			formatCount(i+1), formatDuration(secondsAt(d.At)), formatDuration(api.Seconds(d.Wait)),
			plural(t.Delayed, "request waits", "requests wait"), formatDuration(t.LongestWait))
	}
	switch f := r.FirstDenial; {
	case f == nil && t.Delayed > 0:
		add("No request is denied: the queue of %s is long enough.", owes)
	case f == nil:
		add("%s", p.describeNoDenial(r))
	case f.RetryAfter != api.Seconds(bucket.Never):
		add("The first denial is request %s at %s: %s The client may retry after %s.",
			formatCount(f.Request), formatDuration(f.At), p.describeDenial(f), formatDuration(f.RetryAfter))
	}
	if t.Denied > 0 && t.Allowed > 0 {
		s := fmt.Sprintf("In total, %s of %s are allowed (%s%%)", formatCount(t.Allowed), formatRequests(t.Sent), strconv.FormatFloat(t.Share*100, 'f', 1, 64))
		if l.Algorithm() == bucket.AlgorithmContinuous || l.Algorithm() == bucket.AlgorithmStepped {
			s += fmt.Sprintf(" and spend %s. The bucket holds %s and refills at %s", formatTokens(bucket.Tokens(t.Spent)), formatAmount(l.Capacity()), prose.Rate(l))
		}
		add("%s.", s)
	}
	n, _ := bucket.ParseTokens(string(p.Tokens)) // compile has checked it
	if peak := bucket.Tokens(t.Peak); peak > n {
		add("The busiest %s begins at %s: %s are spent, %s times the %s that refill in that time.",
			formatDuration(r.Window), formatDuration(t.PeakAt), formatTokens(peak), formatNumber(math.Round(float64(peak)/float64(n)*100)/100), formatAmount(n))
	}
	if p.writer != nil && t.Denied > 0 {
		sentences = append(sentences, p.describeRetries(t))
	}
	return sentences
}

// describeNoDenial explains why all requests are allowed.
func (p *play) describeNoDenial(r *api.PlayLaneResult) string {
	least, at := bucket.Tokens(r.Capacity), bucket.Instant(0)
	for _, d := range p.decisions {
		if d.Level < least {
			least, at = d.Level, d.At
		}
	}
	s := fmt.Sprintf("All %s are allowed.", formatRequests(len(p.decisions)))
	if len(p.decisions) == 1 {
		s = "The request is allowed."
	}
	if p.Algorithm == concurrency {
		free := plural(int(max(least, 0)/bucket.Token), "slot is", "slots are")
		return s + fmt.Sprintf(" At least %s free, at %s.", free, formatDuration(secondsAt(at)))
	}
	s += fmt.Sprintf(" The lowest level is %s, at %s.", formatTokens(least), formatDuration(secondsAt(at)))
	if p.full <= p.end {
		s += fmt.Sprintf(" The bucket is full again at %s.", formatDuration(secondsAt(p.full)))
	}
	return s
}

// describeDenial explains the first denial: the tokens at the start, the tokens that came back, and the tokens spent.
func (p *play) describeDenial(f *api.PlayFirstDenial) string {
	d, l := &p.decisions[f.Request-1], p.limit.Bucket
	if f.Before == 0 {
		return fmt.Sprintf("it costs %s, and the bucket holds only %s.", formatAmount(d.Cost), formatTokens(max(d.Level, 0)))
	}
	before := plural(f.Before, "earlier request", "earlier requests")
	spent := bucket.Tokens(0)
	for _, earlier := range p.decisions[:f.Request-1] {
		spent += earlier.Cost // all of them were allowed
	}
	refilled := spent + d.Level - l.Capacity() // since the start
	switch {
	case p.Algorithm == concurrency:
		return fmt.Sprintf("all %s are held, for %s each.", plural(int(l.Capacity()/bucket.Token), "slot", "slots"), formatDuration(api.Seconds(p.per)))
	case l.Queued():
		return fmt.Sprintf("%s are waiting, and the queue holds at most %s.", formatTokens(-d.Level), formatTokens(l.MaxReserved()))
	case l.Algorithm() == bucket.AlgorithmSlidingWindow || l.Algorithm() == bucket.AlgorithmSlidingLog:
		return fmt.Sprintf("%s spent %s, and a window of %s allows at most %s.", before, formatTokens(spent), formatDuration(api.Seconds(p.per)), formatAmount(l.Capacity()))
	case refilled <= 0:
		return fmt.Sprintf("%s spent %s of the initial %s, and nothing has come back yet.", before, formatAmount(spent), formatTokens(l.Capacity()))
	}
	return fmt.Sprintf("the bucket started with %s and got %s back, and %s spent %s. The %s left are less than the cost of %s.",
		formatTokens(l.Capacity()), formatAmount(refilled), before, formatAmount(spent), formatTokens(d.Level), formatAmount(d.Cost))
}

func (p *play) describeRetries(t *api.PlayTotals) string {
	most, served := 1, 0
	for _, d := range p.decisions {
		if d.Allowed && d.Try > 1 {
			served++
			most = max(most, d.Try)
		}
	}
	s := fmt.Sprintf("Denied clients retry after their Retry-After: %s at a later attempt, at most attempt %s. Up to %s at the same instant.",
		plural(served, "request is allowed", "requests are allowed"), formatCount(most), plural(t.MaxAtOnce, "request arrives", "requests arrive"))
	if t.Unserved > 0 {
		s += fmt.Sprintf(" %s after the end.", plural(t.Unserved, "request would be retried", "requests would be retried"))
	}
	return s
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return formatCount(n) + " " + many
}

func (p *play) describeLimit() string {
	s := prose.Limit(p.limit)
	if p.Cost != "" && p.Cost != "1" {
		s += "; a request costs " + string(p.Cost)
	}
	return s
}

func formatNumber(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }

func formatTokens(t bucket.Tokens) string {
	if t == bucket.Token {
		return "1 token"
	}
	return formatAmount(t) + " tokens"
}

func formatRequests(n int) string {
	return plural(n, "request", "requests")
}

// formatAmount formats an amount with separators between thousands.
func formatAmount(t bucket.Tokens) string {
	whole, rest, decimals := strings.Cut(t.String(), ".")
	n, err := strconv.Atoi(whole)
	if err != nil || !decimals {
		return formatCount(n)
	}
	return formatCount(n) + "." + rest
}

// formatCount formats a number with separators between thousands.
func formatCount(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// formatDuration formats a duration: 16.667 ms, 2.5 s, 1h30m.
func formatDuration(s api.Seconds) string {
	switch d := time.Duration(s); {
	case d > 0 && d < time.Millisecond:
		return formatNumber(float64(d)/1e3) + " µs"
	case d > 0 && d < 100*time.Millisecond:
		return formatNumber(float64(d)/1e6) + " ms"
	case d < 2*time.Minute:
		return strconv.FormatFloat(math.Round(d.Seconds()*1000)/1000, 'f', -1, 64) + " s"
	default:
		return prose.Duration(d.Round(time.Millisecond))
	}
}
