// SPDX-License-Identifier: Apache-2.0

package top

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/client"
	"github.com/metehq/mete/cmd/internal/display"
)

// someKeys is an answer with n keys, some of them hard to show.
func someKeys(n int, kind string) api.Top {
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	top := api.Top{Kind: kind, At: at, Since: at.Add(-time.Minute), Total: 1000, RuleCount: 1, Rules: []api.TopRule{{Rule: "free", Total: 1000, Keys: n}}}
	for i := range n {
		value := strings.Repeat([]string{"x", "日", "\u05d0", "\x1b[31m", "e\u0301"}[i%5], i*7%90)
		top.Keys = append(top.Keys, api.TopKey{
			Rule: "free", Limit: "free", Key: "free:user=" + value, Parts: []api.KeyPart{{Name: "query:user", Value: value}},
			Count: uint64(100 - i), Error: uint64(i % 3), First: at.Add(-time.Hour), Last: at,
		})
	}
	return top
}

const secretURL = "http://user:secret@127.0.0.1:8081"

// newModel returns a model that shows top on a screen.
func newModel(top api.Top, width, height int) *model {
	m := &model{options: Options{Server: "http://127.0.0.1:8081", Standard: true, Interval: time.Hour}, width: width, height: height}
	m.question.kind = top.Kind
	m.take(answer{question: question{kind: top.Kind}, top: top})
	return m
}

// text returns the screen without styles.
func (m *model) text() string { return ansi.Strip(strings.Join(m.lines(), "\n")) }

func TestScreen_FitsEverySize(t *testing.T) {
	for _, n := range []int{0, 1, 5, 50} {
		for _, failure := range []error{nil, errors.New("refused\x1b[2J")} {
			for height := range 40 {
				for _, width := range []int{0, 1, 2, 20, 80, 200} {
					for what, m := range someModels(n, width, height) {
						m.options.Server, m.options.Standard, m.err = secretURL, false, failure
						lines := m.lines()
						if len(lines) > height || height >= roomyHeight && len(lines) != height {
							t.Fatalf("%d keys, %s, %d×%d: %d lines", n, what, width, height, len(lines))
						}
						for _, styled := range lines {
							line := ansi.Strip(styled)
							if ansi.StringWidth(line) > width || display.Width(line) > width || strings.ContainsAny(line, "\x1b\n\u05d0\u0301") || strings.Contains(line, "secret") {
								t.Fatalf("%d keys, %s, %d×%d: line %q", n, what, width, height, line)
							}
						}
					}
				}
			}
		}
	}
}

// someModels are a list, one with a selected key and rates, and the details of a key.
func someModels(n, width, height int) map[string]*model {
	models := map[string]*model{"list": newModel(someKeys(n, "denied"), width, height)}
	if n == 0 {
		return models
	}
	busy := newModel(someKeys(n, "near"), width, height)
	for i := range 500 {
		busy.rates.add(&api.Traffic{Window: 2, Rules: map[string]api.RuleCounts{"free": {uint64(i * i), uint64(i), 0, 1, 1 << 60}}}, "")
	}
	busy.selected, busy.paused, models["rates"] = new(busy.top.Keys[n-1]), true, busy
	details := newModel(someKeys(n, "denied"), width, height)
	details.selected, details.open, details.rates, models["details"] = new(details.top.Keys[n/2]), true, busy.rates, details
	return models
}

// A narrow terminal keeps the key: other columns go.
func TestScreen_NarrowKeepsTheKey(t *testing.T) {
	top := someKeys(3, "denied")
	for i := range top.Keys {
		top.Keys[i].Parts[0].Value = "somebody-with-a-name"
	}
	for width, want := range map[int]string{
		200: "DENIED /S SHARE FIRST LAST RETRY RULE KEY",
		62:  "DENIED /S SHARE LAST RETRY RULE KEY",
		52:  "DENIED /S RETRY RULE KEY",
		32:  "DENIED RULE KEY",
	} {
		lines := strings.Split(newModel(top, width, 20).text(), "\n")
		heading := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, "DENIED") })
		if got := strings.Join(strings.Fields(lines[heading]), " "); got != want {
			t.Errorf("%d columns: %q, want %q", width, got, want)
		}
		if row := lines[heading+1]; !strings.Contains(row, "query:user=s") {
			t.Errorf("%d columns: %q, want the key in it", width, row)
		}
	}
	whole := strings.Join(strings.Fields(strings.Split(listText(&top, 3), "\n")[2]), " ")
	if whole != "DENIED /S SHARE FIRST LAST RETRY RULE KEY" {
		t.Errorf("where there is no terminal: %q, want every column", whole)
	}
}

// A session sends messages to a model. The test controls the responses of its server.
type session struct {
	*model
	t     *testing.T
	asked []string
}

func start(t *testing.T, width, height int) *session {
	return &session{model: newModel(someKeys(3, "denied"), width, height), t: t}
}

// send sends a message, and notes the question that it leads to.
func (s *session) send(msg tea.Msg) tea.Cmd {
	before := s.asking
	if _, isAnswer := msg.(answer); isAnswer {
		before = false
	}
	_, cmd := s.Update(msg)
	if s.asking && !before {
		s.asked = append(s.asked, strings.TrimSuffix(fmt.Sprint(s.question.kind, " ", s.question.limit, " ", s.question.rule), " "))
	}
	return cmd
}

// press presses a key, and checks the screen.
func (s *session) press(key tea.KeyPressMsg, parts ...string) tea.Cmd {
	s.t.Helper()
	cmd := s.send(key)
	s.want(parts...)
	return cmd
}

// letter is the key of a letter.
func letter(r rune) tea.KeyPressMsg { return tea.KeyPressMsg{Code: r, Text: string(r)} }

var (
	up     = tea.KeyPressMsg{Code: tea.KeyUp}
	down   = tea.KeyPressMsg{Code: tea.KeyDown}
	enter  = tea.KeyPressMsg{Code: tea.KeyEnter}
	escape = tea.KeyPressMsg{Code: tea.KeyEscape}
	space  = tea.KeyPressMsg{Code: tea.KeySpace, Text: " "}
)

// want checks the screen. A part that begins with ! must not be on it.
func (s *session) want(parts ...string) {
	s.t.Helper()
	shown := s.text()
	for _, part := range parts {
		if not, ok := strings.CutPrefix(part, "!"); ok == strings.Contains(shown, not) {
			s.t.Errorf("want %q on the screen:\n%s", part, shown)
		}
	}
}

// answer answers the question that is under way.
func (s *session) answer(top api.Top, traffic *api.Traffic) {
	s.send(answer{question: s.question, top: top, traffic: traffic})
}

func TestModel_Lists(t *testing.T) {
	s := start(t, 80, 20)
	s.want("denied keys of all rules", "12:00:00 UTC", "  DENIED", "no other key", "q quit")
	if heading := s.lines()[3]; !strings.Contains(heading, "\x1b[7m") {
		t.Errorf("the heading is not reversed: %q", heading)
	}
	if s.Init() == nil {
		t.Error("there is no first tick")
	}
	if s.send(tick{}) == nil {
		t.Error("a tick is the last one")
	}
	s.send(tick{}) // while an answer is under way
	s.answer(someKeys(4, "denied"), nil)
	if got := strings.Count(s.text(), "query:user"); got != 4 {
		t.Errorf("%d keys, want 4", got)
	}
	s.press(letter('n'))
	s.answer(someKeys(4, "near"), nil)
	s.want("near keys of all rules", " NEAR ", "!RETRY")

	s.send(tick{})
	s.send(answer{question: s.question, err: &client.Error{Op: "top", Kind: client.KindUnreachable, Err: errors.New("refused")}})
	s.want("unreachable, retrying", "near keys")
	s.send(tick{})
	s.answer(someKeys(4, "near"), nil)
	s.want("!unreachable", "near keys")

	s.send(tea.WindowSizeMsg{Width: 40, Height: 12})
	s.want("…")
	if n := len(s.lines()); n != 12 {
		t.Errorf("%d lines in a terminal of 12", n)
	}
	if want := "denied 20,near 20,near 20,near 20"; strings.Join(s.asked, ",") != want {
		t.Errorf("asked for %q, want %s", s.asked, want)
	}
}

// The kind that was chosen last is asked for, though an answer of another kind is under way.
func TestModel_AsksAgain(t *testing.T) {
	s := start(t, 80, 20)
	s.send(tick{})
	late := s.question
	s.press(letter('s'))
	s.send(answer{question: late, top: someKeys(3, "denied")})
	s.answer(someKeys(2, "shadow"), nil)
	s.want("shadow keys of all rules")
	if want := "denied 20,shadow 20"; strings.Join(s.asked, ",") != want {
		t.Errorf("asked for %q, want %s", s.asked, want)
	}
}

// The arrows select a key, and Enter shows its details.
func TestModel_Details(t *testing.T) {
	s := start(t, 80, 24)
	s.want("!›", "⏎ details")
	s.press(down, "›    100")
	s.press(down)
	s.press(down)
	s.press(down, "›  96-98") // and no further than the last
	s.press(up, "›  98-99")
	s.press(enter, "Rule free", "query:user  日日日日日日日", "98-99 times in the last 1m, 1.65/s, 10% of what the rule denied",
		"last        12:00:00 UTC, now", "retry after now", "Block it for an hour", "esc back", "!SHARE")
	s.press(down, "cannot be displayed here")
	s.press(escape, "!Rule free", "SHARE", "›  96-98")
	s.press(escape, "!›")
	s.press(letter('k'), "›  96-98")
	s.press(enter)
	s.press(enter, "›  96-98", "!Rule free")
	s.press(letter('z'), "›  96-98")
	s.press(tea.KeyPressMsg{Code: tea.KeyPgUp}, "›  96-98")
	// A key that is no longer listed stays open until the details are closed.
	s.press(enter, "Rule free")
	s.answer(someKeys(1, "denied"), nil)
	s.want("Rule free")
	s.press(escape, "!›", "!Rule free")
}

// The details of a key of a concurrency limit list the requests that hold its slots.
func TestModel_Slots(t *testing.T) {
	s := start(t, 80, 30)
	s.press(down)
	s.press(enter, "Rule free", "!slots")
	if s.question.key != "free:user=" || !s.asking {
		t.Fatalf("the details of a key do not ask for its bucket: %+v", s.question)
	}
	bucket := &api.Bucket{Capacity: 20_000, Remaining: 8_000}
	for i := range 10 {
		bucket.Slots = append(bucket.Slots, api.Slot{ID: fmt.Sprintf("%08x", i), Left: api.Seconds(time.Duration(i+1) * time.Second)})
	}
	s.send(answer{question: s.question, top: someKeys(3, "denied"), bucket: bucket})
	s.want("slots       12 of 20 held", "00000000 ends in 1s", "00000007 ends in 8s", "and 4 more", "!00000008", "Block it for an hour")
	s.press(down, "!slots") // of another key
	s.press(up)
	s.press(escape, "!slots")
	s.answer(someKeys(3, "denied"), nil)
	if len(s.asked) != 2 || s.question.key != "" {
		t.Errorf("asked for %q, then for the key %q", s.asked, s.question.key)
	}
}

// Rates are above the list, rule by rule, until the user pauses.
func TestModel_RulesAndPause(t *testing.T) {
	traffic := &api.Traffic{Window: 2, Rules: map[string]api.RuleCounts{"free": {30, 4, 0, 0, 2}, "pro": {2000, 0, 10, 0, 0}}}
	s := start(t, 80, 24)
	s.want("!allowed")
	s.answer(someKeys(3, "denied"), traffic)
	s.want("allowed      1015/s █", "denied        2.0/s █", "shadow        5.0/s █", "degraded      1.0/s █")
	s.press(letter('r'))
	s.answer(someKeys(3, "denied"), traffic)
	s.want("keys of rule free", "allowed      15.0/s █", "shadow          0/s ▁")
	s.press(letter('/'))
	s.answer(someKeys(3, "denied"), traffic)
	s.want("keys of rule pro", "allowed      1000/s █")
	s.press(letter('p'), "mete top, paused:", "p resume")
	asked := len(s.asked)
	s.send(tick{})
	if s.want("paused"); len(s.asked) != asked {
		t.Errorf("while it is paused it asks %d times", len(s.asked)-asked)
	}
	s.press(letter('r')) // a new question is asked
	s.answer(someKeys(3, "denied"), traffic)
	s.want("keys of all rules", "paused")
	s.press(space, "!paused")
	s.send(tick{})
	s.answer(someKeys(3, "denied"), traffic)
	s.want("allowed      1015/s ██")
	// A rule that is gone from the policy is not offered again.
	s.press(letter('r'))
	s.send(answer{question: s.question, err: &client.Error{Op: "top", Kind: client.KindRefused, Status: 400, Problem: &api.Problem{Detail: "no rule is named"}}})
	if s.want("no rule is named"); !slices.Equal(s.rules, []string{"pro"}) {
		t.Errorf("rules %q, want pro alone", s.rules)
	}
}

func TestModel_Order(t *testing.T) {
	s := start(t, 80, 24)
	for i := range s.top.Keys {
		s.top.Keys[i].Last = s.top.At.Add(time.Duration(i) * time.Second)
		s.top.Keys[i].First = s.top.At.Add(-time.Duration(i%2) * time.Minute)
	}
	for _, tt := range []struct {
		title string
		want  []uint64
	}{{" by last,", []uint64{98, 99, 100}}, {" by first,", []uint64{99, 98, 100}}, {" by key,", []uint64{100, 98, 99}}, {"!rules by ", []uint64{100, 99, 98}}} {
		s.press(letter('o'), tt.title, "no other key")
		var got []uint64
		for _, k := range s.top.Keys {
			got = append(got, k.Count)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: counts %d, want %d", tt.title, got, tt.want)
		}
	}
}

func TestModel_Quits(t *testing.T) {
	for _, key := range []tea.KeyPressMsg{letter('q'), letter('Q'), {Code: 'c', Mod: tea.ModCtrl}, {Code: 'd', Mod: tea.ModCtrl}} {
		cmd := start(t, 80, 24).press(key)
		if cmd == nil {
			t.Errorf("%s does not quit", key)
		} else if _, ok := cmd().(tea.QuitMsg); !ok {
			t.Errorf("%s does not quit", key)
		}
	}
}

// Commands can be copied as they stand, whatever the key has in it.
func TestDetails_Commands(t *testing.T) {
	for _, tt := range []struct {
		name, key, server string
		parts             []api.KeyPart
		want              []string
		not               string
	}{
		{"plain", "free:ip=192.0.2.1", "", []api.KeyPart{{Name: "ip:address", Value: "192.0.2.1"}},
			[]string{"mete explain ip:address=192.0.2.1", "mete override set --action block --key free:ip=192.0.2.1 --expires 1h --reason 'reason'"}, "--server"},
		{"quotes", "free:user=it's|path=/a%20b", "http://u:secret@h:1/x", []api.KeyPart{{Name: "query:user", Value: "it's; rm"}},
			[]string{`mete explain 'query:user=it'\''s; rm' --server http://h:1/x`, `set --action allow --key 'free:user=it'\''s|path=/a%20b' --expires`}, "secret"},
		{"hashed", "free:x-api-key=~8jDYDw", "", []api.KeyPart{{Name: "header:x-api-key", Value: "8jDYDw", Hashed: true}},
			[]string{"8jDYDw (the hash of a secret)", "--key 'free:x-api-key=~8jDYDw'"}, "mete explain"},
		{"hostile", "free:user=\x1b[2J", "", nil, []string{"cannot be displayed here"}, "--key"},
	} {
		top := someKeys(1, "denied")
		top.Keys[0].Key, top.Keys[0].Parts = tt.key, tt.parts
		m := newModel(top, 200, 40)
		if m.selected, m.open = new(m.top.Keys[0]), true; tt.server != "" {
			m.options.Server, m.options.Standard = tt.server, false
		}
		text := m.text()
		for _, want := range tt.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is not in\n%s", tt.name, want, text)
			}
		}
		if strings.Contains(text, tt.not) {
			t.Errorf("%s: %q is in\n%s", tt.name, tt.not, text)
		}
		// On a narrow terminal a shell joins the lines.
		m.width, m.height = 60, 60
		narrow := strings.Join(strings.Fields(strings.ReplaceAll(m.text(), " \\\n", "")), " ")
		if tt.name != "hostile" && !strings.Contains(narrow, "override set --action block --key "+display.Quote(tt.key)+" --expires 1h") {
			t.Errorf("%s: the command is not whole in 60 columns:\n%s", tt.name, narrow)
		}
	}
	top := someKeys(1, "denied")
	top.Masked = true
	m := newModel(top, 80, 24)
	m.selected, m.open = new(m.top.Keys[0]), true
	if text := m.text(); !strings.Contains(text, "token of the role\noperate") || strings.Contains(text, "--key") {
		t.Errorf("of a masked key:\n%s", text)
	}
}

func TestSparkline(t *testing.T) {
	for _, tt := range []struct {
		values  []float64
		columns int
		want    string
	}{
		{nil, 5, ""},
		{[]float64{1}, 0, ""},
		{[]float64{1}, -1, ""},
		{[]float64{0, 0}, 5, "▁▁"},
		{[]float64{1, 1}, 5, "██"},
		{[]float64{0, 0.001, 50, 100}, 5, "▁▂▅█"},
		{[]float64{9, 9, 1, 0}, 2, "█▁"},
	} {
		if got := sparkline(tt.values, tt.columns); got != tt.want {
			t.Errorf("%v in %d columns: %s, want %s", tt.values, tt.columns, got, tt.want)
		}
	}
	for part, want := range map[float64]string{0: "    ", 0.0001: "▏   ", 0.5: "██  ", 0.6: "██▍ ", 1: "████", 7: "████"} {
		if got := shareBar(part, 4); got != want {
			t.Errorf("%v: %q, want %q", part, got, want)
		}
	}
}
