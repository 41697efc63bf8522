// SPDX-License-Identifier: Apache-2.0

package crawlers_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/metehq/mete/crawlers"
	"github.com/metehq/mete/policy"
)

func readLines(tb testing.TB, file string) []string {
	tb.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
}

var browsers = []string{
	"",
	"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36",
	"Mozilla/5.0 (Macintosh; Intel Mac OS X 14_5) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Safari/605.1.15",
	"Mozilla/5.0 (X11; Linux x86_64; rv:127.0) Gecko/20100101 Firefox/127.0",
	"Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1",
	"Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Mobile Safari/537.36",
}

// The list finds what the expressions find one by one.
func TestIsCrawler_AgreesWithThePatterns(t *testing.T) {
	matchesAny := compilePatterns(t)
	robots := readLines(t, "testdata/crawlers.txt")
	texts := append([]string{}, browsers...)
	for i := 0; i < len(robots); i += 10 {
		s := robots[i]
		texts = append(texts, s, strings.ToLower(s), s[:len(s)/2], s[len(s)/2:], "x"+s, browsers[1]+" "+robots[len(robots)-1-i])
	}
	for _, s := range texts {
		if got, want := crawlers.IsCrawler(s), matchesAny(s); got != want {
			t.Errorf("IsCrawler(%q) = %t, want %t", s, got, want)
		}
	}
}

// compilePatterns returns a function that tries each pattern.
func compilePatterns(tb testing.TB) func(string) bool {
	var expressions []*regexp.Regexp
	for _, p := range readLines(tb, "patterns.txt") {
		expressions = append(expressions, regexp.MustCompile(p))
	}
	return func(s string) bool {
		return slices.ContainsFunc(expressions, func(e *regexp.Regexp) bool { return e.MatchString(s) })
	}
}

func TestIsCrawler(t *testing.T) {
	for _, s := range readLines(t, "testdata/crawlers.txt") {
		if !crawlers.IsCrawler(s) {
			t.Errorf("IsCrawler(%q) = false", s)
		}
	}
	for _, s := range browsers {
		if crawlers.IsCrawler(s) {
			t.Errorf("IsCrawler(%q) = true", s)
		}
	}
}

// A text that repeats a literal runs the expression behind it once, so that its cost grows with the length alone. Before,
// 16 KB of the first text took 6 seconds.
func TestIsCrawler_Hostile(t *testing.T) {
	for _, part := range []string{"get", "google", "Current\n", "dbot", " LCC", "Riddler (http:"} {
		text := "x" + strings.Repeat(part, 1<<20/len(part))
		if crawlers.IsCrawler(text) != crawlers.IsCrawler(text[:1000]) {
			t.Errorf("%q repeated is a crawler only if it is long", part)
		}
	}
}

func TestFind(t *testing.T) {
	for _, tc := range []struct{ attribute, agent, value string }{
		{"ua:bot", "Googlebot/2.1 (+http://www.google.com/bot.html)", "true"},
		{"ua:bot", browsers[1], "false"},
		{"ua:bot", "", "false"},
		{"ip:country", "Googlebot/2.1", ""},
	} {
		a, err := policy.ParseAttribute(tc.attribute)
		if err != nil {
			t.Fatal(err)
		}
		if value, ok := crawlers.Find(a, tc.agent); value != tc.value || ok != (tc.value != "") {
			t.Errorf("Find(%s, %q) = %q, %t; want %q", tc.attribute, tc.agent, value, ok, tc.value)
		}
	}
}

func FuzzIsCrawler(f *testing.F) {
	matchesAny := compilePatterns(f)
	for _, s := range append(browsers, "Googlebot/2.1", "\xff\x00ab", "curl/8", "Current\nRSS Reader") {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got, want := crawlers.IsCrawler(s), matchesAny(s); got != want {
			t.Errorf("IsCrawler(%q) = %t, want %t", s, got, want)
		}
	})
}

func Example() {
	const rules = `{"rules": [{"name": "robots", "limit_keys": ["header:user-agent"], "match": {"ua:bot": true},
		"algorithm_config": {"rate": "1/1s", "burst": 5}}]}`
	matcher, err := policy.Load([]byte(rules), policy.Options{Facts: policy.Facts{Find: crawlers.Find}})
	if err != nil {
		panic(err)
	}
	matches, _ := matcher.Match(nil, policy.Map{"header:user-agent": "GPTBot/1.2"}, 0, 0)
	fmt.Println(len(matches), matches[0].Rule.Name)
	// Output: 1 robots
}

func BenchmarkIsCrawler(b *testing.B) {
	for _, tc := range []struct{ name, agent string }{{"browser", browsers[1]}, {"crawler", "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"}} {
		b.Run(tc.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				crawlers.IsCrawler(tc.agent)
			}
		})
	}
}
