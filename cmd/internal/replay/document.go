// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/metehq/mete/cmd/internal/display"
	"github.com/metehq/mete/cmd/internal/trace"
	"github.com/metehq/mete/internal/prose"
	"github.com/metehq/mete/policy"
)

// Bounds of lists in text and on pages.
const (
	maxTextKeys  = 10
	maxPageKeys  = 25
	maxPageRules = 100
)

// A Report is the result of a replay. It is written as text or as an HTML page.
type Report struct {
	Policy, Trace string // file names
	Old           string // file name of the old policy in a comparison
	Format        string // of the trace
	Counts        Counts
	Elapsed       time.Duration // real time; 0 omits the speed

	// ShowKeys includes the keys. Otherwise numbers replace keys, so that the report is safe to share.
	ShowKeys bool

	Screen Screen // for text
}

// Counts is implemented by [Stats] and [Comparison].
type Counts interface {
	Disorder() string
	InvalidLines() int64
	Invalid(*trace.LineError)

	// document returns the report for text or for a page.
	document(r *Report, page bool) *document
}

// WriteTo writes the report as text.
func (r Report) WriteTo(w io.Writer) (int64, error) {
	n, err := io.WriteString(w, r.Counts.document(&r, false).text(r.Screen))
	return int64(n), err
}

// WriteHTML writes the report as a self-contained HTML page. It omits the speed of the replay, so that equal
// reports are equal pages.
func (r Report) WriteHTML(w io.Writer) error {
	r.Elapsed = 0
	return r.Counts.document(&r, true).writePage(w)
}

// A document is the content of a report before formatting. Text has no headline, figures and policy descriptions,
// and pages have no bars.
type document struct {
	Title, Kind, Headline string
	Facts                 []fact
	Warning               string
	Totals                []total
	Bars                  chart
	Figures               []*figure
	Tables                []*sheet
	Policy                []ruleWords
	PolicyLeft            string
	Notes                 []string
}

type (
	fact  struct{ Name, Text string }
	total struct {
		Name, Color, Count, Share, Note string
	}
	ruleWords struct {
		Name, Mode, Edit, About, Keys string
		Match                         []fact
		Limits                        []string
	}
)

// A sheet is a table.
type sheet struct {
	ID, Title, About, Foot string
	Columns                []column
	Rows                   [][]cell
}

// A column is a column of a sheet. On a narrow terminal, columns with the highest drop are omitted first.
type column struct {
	Kind        string // name, mono, badge, num, when, key, bar (in text without a number), share or spark (pages only)
	group, text string // headings in text
	Page        string // heading on a page
	drop        int
}

// A cell contains text, a share or a spark.
type cell struct {
	Kind, Text, Color string
	n, all            int64
	Spark             spark
}

// Percent returns the length of a bar.
func (c cell) Percent() string {
	part := 0.0
	if c.n > 0 {
		part = max(100*float64(c.n)/float64(c.all), 1)
	}
	return strconv.FormatFloat(part, 'f', 1, 64)
}

func (s *sheet) add(cells ...cell) {
	for i := range cells {
		cells[i].Kind, cells[i].Text = s.Columns[i].Kind, display.EscapeUnsafe(cells[i].Text)
	}
	s.Rows = append(s.Rows, cells)
}

// remove removes the columns with indexes in [from, to).
func (s *sheet) remove(from, to int) {
	s.Columns = slices.Delete(s.Columns, from, to)
	for i, row := range s.Rows {
		s.Rows[i] = slices.Delete(row, from, to)
	}
}

func textCell(text string) cell { return cell{Text: text} }

func partCell(n, all int64, color string) cell {
	return cell{Text: percent(n, all), n: n, all: all, Color: color}
}

// newDocument starts the document of a report with the facts and notes that all reports have.
func (c *counts) newDocument(r *Report, page bool, policies ...fact) *document {
	d := &document{Facts: policies}
	text := fmt.Sprintf("%s, %s, %s", r.Trace, r.Format, prose.Count(c.requests.count, "request"))
	if c.requests.count > 0 {
		text += " in " + formatDuration(c.requests.last-c.requests.first)
	}
	d.Facts = append(d.Facts, fact{"Trace", text})
	if c.requests.count > 0 {
		d.Facts = append(d.Facts, fact{"From", formatInstant(c.requests.first, c.requests.last)}, fact{"To", formatInstant(c.requests.last, c.requests.last)})
	}
	for i := range d.Facts {
		d.Facts[i].Text = display.EscapeUnsafe(d.Facts[i].Text)
	}
	d.Warning = c.Disorder()
	if page && c.requests.count > 0 {
		d.Totals = []total{{Name: "Requests", Count: groupDigits(c.requests.count), Note: "in " + formatDuration(c.requests.last-c.requests.first)}}
	}
	return d
}

func (d *document) note(format string, args ...any) {
	d.Notes = append(d.Notes, display.EscapeUnsafe(fmt.Sprintf(format, args...)))
}

// endNotes adds the notes at the end of all reports.
func (c *counts) endNotes(d *document, r *Report, keys, missed int64) {
	if keys > 0 && !r.ShowKeys {
		d.note("--show-keys shows the keys")
	}
	if missed > 0 {
		d.note("a list has more than %d keys: counts of single keys may be up to %d too low", maxTallies, missed)
	}
	if c.invalid > 0 {
		d.note("%s skipped", prose.Count(c.invalid, "invalid line was", "invalid lines were"))
	}
	if r.Elapsed > 0 && c.requests.count > 0 {
		d.note("replayed in %s, %.0f requests per second", r.Elapsed.Round(time.Millisecond), float64(c.requests.count)/r.Elapsed.Seconds())
	}
}

func (c *counts) total(d *document, page bool, name, color string, n int64, note string) {
	count := strconv.FormatInt(n, 10)
	if page {
		name, count = strings.ToUpper(name[:1])+name[1:], groupDigits(n)
	}
	d.Totals = append(d.Totals, total{name, color, count, percent(n, c.requests.count), note})
}

// times describes the first and the last of some events.
func (c *counts) times(s span) string {
	if s.count == 0 {
		return ""
	}
	return "first " + c.formatTime(s.first) + ", last " + c.formatTime(s.last)
}

// addKeys adds the keys with the most requests.
func (c *counts) addKeys(s *sheet, r *Report, page bool, list *toplist, all int64, color func(rule string) string, names *keyNames) {
	most := maxTextKeys
	if page {
		most = maxPageKeys
	}
	for _, entry := range list.top(most) {
		row := []cell{textCell(names.name(entry)), textCell(entry.rule), textCell(number(entry.count, page)), partCell(entry.count, all, color(entry.rule)),
			textCell(c.formatTime(entry.first)), textCell(c.formatTime(entry.last))}
		if len(s.Columns) > len(row) {
			example := entry.place
			if r.ShowKeys && entry.request != "" {
				example += " " + entry.request
			}
			row = append(row, textCell(example))
		}
		s.add(row...)
	}
	s.About = "the keys with the most requests"
	if n := int64(len(list.tallies)); n <= maxPageKeys {
		s.About = prose.Count(n, "key")
	} else if list.missed == 0 {
		s.About = fmt.Sprintf("the first %d of %s keys", maxPageKeys, groupDigits(n))
	}
}

// mostOf returns the rules for a report. A page shows at most maxPageRules, those with the greatest weight, in
// policy order. left describes the selection.
func mostOf[T comparable](rules []T, page bool, weigh func(a, b T) int, did string) (most []T, left string) {
	if !page || len(rules) <= maxPageRules {
		return rules, ""
	}
	heaviest := slices.SortedStableFunc(slices.Values(rules), func(a, b T) int { return weigh(b, a) })[:maxPageRules]
	most = slices.DeleteFunc(slices.Clone(rules), func(r T) bool { return !slices.Contains(heaviest, r) })
	return most, fmt.Sprintf("the %d of %s that %s the most", maxPageRules, prose.Count(len(rules), "rule"), did)
}

// describePolicy adds the rules of a policy in words, with their changes.
func (d *document) describePolicy(m *policy.Matcher, edits map[string]string) {
	rules, descriptions := m.Rules(), m.Describe()
	for i, r := range rules[:min(len(rules), maxPageRules)] {
		w := ruleWords{Name: r.Name, Mode: r.Mode.String(), Edit: edits[r.Name], About: display.EscapeUnsafe(r.Description), Keys: "One bucket for all requests"}
		var keys []string
		for _, a := range r.LimitKeys {
			keys = append(keys, display.EscapeUnsafe(a.Spelling()))
		}
		if len(keys) > 0 {
			w.Keys = "A bucket for each " + strings.Join(keys, " and ")
		}
		for j, clauses := range descriptions[i].Match {
			for k, c := range clauses {
				name := display.EscapeUnsafe(c.Attribute.String())
				if j > 0 && k == 0 {
					name = "or " + name
				}
				w.Match = append(w.Match, fact{name, display.EscapeUnsafe(c.Wants)})
			}
		}
		for j := range r.Limits {
			w.Limits = append(w.Limits, prose.Limit(&r.Limits[j]))
		}
		d.Policy = append(d.Policy, w)
	}
	if len(rules) > maxPageRules {
		d.PolicyLeft = fmt.Sprintf("the first %d of %s", maxPageRules, prose.Count(len(rules), "rule"))
	}
}

// number formats a count, with thousands separators on a page.
func number(n int64, page bool) string {
	if page {
		return groupDigits(n)
	}
	return strconv.FormatInt(n, 10)
}

func requestCount(n int64) string {
	return groupDigits(n) + cmp.Or(map[int64]string{1: " request"}[n], " requests")
}
