// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/client"
	"github.com/metehq/mete/cmd/internal/display"
)

// someKeys is an answer with so many keys, some of them hard to show.
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

func TestTopScreen_FitsEverySize(t *testing.T) {
	for _, n := range []int{0, 1, 5, 50} {
		top := someKeys(n, "denied")
		for _, trouble := range []string{"", "since 12:00:00 UTC: unreachable, retrying"} {
			for height := range 40 {
				for _, width := range []int{0, 1, 2, 20, 80, 200} {
					for _, f := range someFrames(&top, trouble) {
						lines := f.lines(width, height)
						if len(lines) > height || height >= roomyHeight && len(lines) != height {
							t.Fatalf("%d keys, %d×%d: %d lines", n, width, height, len(lines))
						}
						for _, l := range lines {
							line := l.String()
							if display.Width(line) > width || strings.ContainsAny(line, "\x1b\n\u05d0\u0301") || strings.Contains(line, "secret") {
								t.Fatalf("%d keys, %d×%d: line %q", n, width, height, line)
							}
						}
					}
				}
			}
		}
	}
}

// someFrames are a list, one with a key chosen and with what goes on, and the details of it.
func someFrames(top *api.Top, trouble string) []topFrame {
	const server = "http://user:secret@127.0.0.1:8081"
	busy := &traffic{}
	for i := range 500 {
		busy.add(&api.Traffic{Window: 2, Rules: map[string]api.RuleCounts{"free": {uint64(i * i), uint64(i), 0, 1, 1 << 60}}}, "")
	}
	frames := []topFrame{{server: server, trouble: trouble, top: top, traffic: &traffic{}, selected: -1, kind: "denied"}}
	if n := len(top.Keys); n > 0 {
		frames = append(frames, topFrame{server: server, trouble: trouble, top: top, traffic: busy, selected: n - 1, kind: "near", paused: true},
			topFrame{server: server, trouble: trouble, top: top, traffic: busy, selected: n / 2, open: &top.Keys[n/2], kind: "denied"})
	}
	return frames
}

// On a narrow terminal the key, which is what one looks for, stays: other columns go.
func TestTopScreen_NarrowKeepsTheKey(t *testing.T) {
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
		f := topFrame{server: "http://127.0.0.1:8081", top: &top, traffic: &traffic{}, selected: -1}
		lines := f.lines(width, 20)
		heading := slices.IndexFunc(lines, func(l line) bool { return strings.Contains(l.String(), "DENIED") })
		if got := strings.Join(strings.Fields(lines[heading].String()), " "); got != want {
			t.Errorf("%d columns: %q, want %q", width, got, want)
		}
		if row := lines[heading+1].String(); !strings.Contains(row, "query:user=s") {
			t.Errorf("%d columns: %q, want the key in it", width, row)
		}
	}
	plain := strings.Join(strings.Fields(topTable(&top, 0, 3, 0)[0]), " ")
	if plain != "DENIED /S SHARE FIRST LAST RETRY RULE KEY" {
		t.Errorf("where there is no terminal: %q, want every column", plain)
	}
}

// A screen is a terminal that remembers what was drawn last.
type screen struct {
	mu    sync.Mutex
	all   bytes.Buffer
	last  string
	w, h  int
	drawn int
	fails bool
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails {
		return 0, io.ErrClosedPipe
	}
	s.all.Write(p)
	if text, ok := strings.CutPrefix(string(p), toTheTop); ok {
		s.last = text
		s.drawn++
	}
	return len(p), nil
}

func (s *screen) size() (int, int) { s.mu.Lock(); defer s.mu.Unlock(); return s.w, s.h }

func (s *screen) resize(w, h int) { s.mu.Lock(); defer s.mu.Unlock(); s.w, s.h = w, h }

func (s *screen) draws() int { s.mu.Lock(); defer s.mu.Unlock(); return s.drawn }

func (s *screen) text() string { s.mu.Lock(); defer s.mu.Unlock(); return s.last }

// A session is a view that runs, in virtual time.
type session struct {
	*screen
	keys  *io.PipeWriter
	down  bool
	asked []string

	traffic *api.Traffic
	ended   chan struct{}
}

func startView(t *testing.T, ctx context.Context) *session {
	t.Helper()
	typed, keys := io.Pipe()
	s := &session{screen: &screen{w: 80, h: 20}, keys: keys, ended: make(chan struct{})}
	v := &topView{
		terminal: &terminal{out: s, in: typed, size: s.size}, server: "http://127.0.0.1:8081", interval: 2 * time.Second,
		question: topQuestion{kind: "denied"}, shown: someKeys(3, "denied"),
		ask: func(_ context.Context, q topQuestion) topAnswer {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.asked = append(s.asked, strings.TrimSuffix(fmt.Sprint(q.kind, " ", q.limit, " ", q.rule), " "))
			if s.down {
				return topAnswer{topQuestion: q, err: &client.Error{Op: "top", Kind: client.Unreachable, Err: errors.New("refused")}}
			}
			return topAnswer{q, someKeys(min(len(s.asked)+3, 9), q.kind), s.traffic, nil}
		},
	}
	go func() {
		defer close(s.ended)
		v.run(ctx)
		typed.Close()
	}()
	return s
}

// looks are what makes text stand out.
var looks = regexp.MustCompile("\x1b\\[[0-9;]*m")

func (s *session) want(t *testing.T, parts ...string) {
	t.Helper()
	synctest.Wait()
	for _, part := range parts {
		shown := s.text()
		if !strings.Contains(part, "\x1b") {
			shown = looks.ReplaceAllString(shown, "")
		}
		if not, ok := strings.CutPrefix(part, "!"); ok == strings.Contains(shown, not) {
			t.Errorf("the screen has not %q: %q", part, shown)
		}
	}
}

func TestTopView(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startView(t, t.Context())
		s.want(t, "denied keys of all rules", "12:00:00 UTC", "\x1b[7m  DENIED", "no other key", "q quit")
		before := strings.Count(s.text(), "query:user")
		time.Sleep(2*time.Second + time.Millisecond)
		s.want(t, "denied keys")
		if got := strings.Count(s.text(), "query:user"); got != before+1 {
			t.Errorf("after an interval: %d keys, before %d", got, before)
		}
		s.keys.Write([]byte("n"))
		s.want(t, "near keys of all rules", " NEAR ", "!RETRY")

		s.mu.Lock()
		s.down = true
		s.mu.Unlock()
		time.Sleep(5 * time.Second)
		s.want(t, "unreachable, retrying", "near keys")
		s.mu.Lock()
		s.down = false
		s.mu.Unlock()
		time.Sleep(2 * time.Second)
		s.want(t, "!unreachable", "near keys")

		drawn := s.draws()
		time.Sleep(time.Second)
		s.resize(40, 12)
		time.Sleep(sizeInterval)
		s.want(t, "…")
		if n := strings.Count(s.text(), "\r\n"); n != 11 {
			t.Errorf("%d lines in a terminal of 12", n+1)
		}
		if again := s.draws() - drawn; again > 2 {
			t.Errorf("drawn %d times within a second, with nothing new", again)
		}
		s.keys.Write([]byte("xq"))
		<-s.ended
		if want := "denied 20,near 20"; !strings.HasPrefix(strings.Join(s.asked, ","), want) {
			t.Errorf("asked for %q, want %s first", s.asked, want)
		}
	})
}

// press types a key, and waits for what it does.
func (s *session) press(t *testing.T, key string, parts ...string) {
	t.Helper()
	if _, err := s.keys.Write([]byte(key)); err != nil {
		t.Fatal(err)
	}
	s.want(t, parts...)
}

// Somebody chooses a key, and looks at all that is known of it.
func TestTopView_Details(t *testing.T) {
	const up, down, escape = "\x1b[A", "\x1bOB", "\x1b"
	synctest.Test(t, func(t *testing.T) {
		s := startView(t, t.Context())
		s.resize(80, 24)
		time.Sleep(sizeInterval)
		s.want(t, "!›", "⏎ details")
		s.press(t, down, "›    100")
		s.press(t, down+down+down, "›  96-98") // and no further than the last
		s.press(t, up, "›  98-99")
		s.press(t, "\r", "Rule free", "query:user  日日日日日日日", "98-99 times in the last 1m, 1.65/s, 10% of what the rule denied",
			"last        12:00:00 UTC, now", "retry after now", "Block it for an hour", "esc back", "!SHARE")
		s.press(t, down, "cannot be typed here")
		s.press(t, escape, "!Rule free", "SHARE", "›  96-98")
		s.press(t, escape, "!›")
		s.press(t, "k", "›  96-98")
		s.press(t, "\r\r", "›  96-98", "!Rule free")
		s.press(t, "\x1b[5~\x1b[1;5C\x1b[<0;1;1Mz", "›  96-98") // keys that it does not know
		s.press(t, "q")
		<-s.ended
	})
}

// What goes on now is above the list, rule by rule, unless it is paused.
func TestTopView_RulesAndPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startView(t, t.Context())
		s.mu.Lock()
		s.traffic = &api.Traffic{Window: 2, Rules: map[string]api.RuleCounts{"free": {30, 4, 0, 0, 2}, "pro": {2000, 0, 10, 0, 0}}}
		s.mu.Unlock()
		s.want(t, "!allowed")
		time.Sleep(2*time.Second + time.Millisecond)
		s.want(t, "allowed      1015/s █", "denied        2.0/s █", "shadow        5.0/s █", "degraded      1.0/s █")
		s.press(t, "r", "keys of rule free", "allowed      15.0/s █", "shadow          0/s ▁")
		s.press(t, "/", "keys of rule pro", "allowed      1000/s █")
		s.press(t, "p", "mete top, paused:", "p go on")
		asked := len(s.asked)
		time.Sleep(time.Minute)
		s.want(t, "paused")
		if got := len(s.asked); got != asked {
			t.Errorf("while it is paused it asks %d times", got-asked)
		}
		s.press(t, "r", "keys of all rules", "paused") // what is wanted anew is asked for
		s.press(t, "p", "!paused")
		time.Sleep(2*time.Second + time.Millisecond)
		s.want(t, "allowed      1015/s ██")
		s.press(t, "q")
		<-s.ended
	})
}

// Commands can be copied as they stand, whatever the key has in it.
func TestTopDetails_Commands(t *testing.T) {
	for _, tt := range []struct {
		name, key, server string
		parts             []api.KeyPart
		want              []string
		not               string
	}{
		{"plain", "free:ip=192.0.2.1", "http://127.0.0.1:8081", []api.KeyPart{{Name: "ip:address", Value: "192.0.2.1"}},
			[]string{"mete explain ip:address=192.0.2.1", "mete override set --action block --key free:ip=192.0.2.1 --expires 1h --reason 'say why'"}, "--server"},
		{"quotes", "free:user=it's|path=/a%20b", "http://u:secret@h:1/x", []api.KeyPart{{Name: "query:user", Value: "it's; rm"}},
			[]string{`mete explain 'query:user=it'\''s; rm' --server http://h:1/x`, `set --action allow --key 'free:user=it'\''s|path=/a%20b' --expires`}, "secret"},
		{"hashed", "free:x-api-key=~8jDYDw", "http://127.0.0.1:8081", []api.KeyPart{{Name: "header:x-api-key", Value: "8jDYDw", Hashed: true}},
			[]string{"8jDYDw (a hash of what may be a secret)", "--key 'free:x-api-key=~8jDYDw'"}, "mete explain"},
		{"hostile", "free:user=\x1b[2J", "http://127.0.0.1:8081", nil, []string{"cannot be typed here"}, "--key"},
	} {
		top := someKeys(1, "denied")
		top.Keys[0].Key, top.Keys[0].Parts = tt.key, tt.parts
		f := topFrame{server: tt.server, top: &top, traffic: &traffic{}, open: &top.Keys[0], kind: "denied"}
		text := screenText(f.lines(200, 40))
		for _, want := range tt.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is not in\n%s", tt.name, want, text)
			}
		}
		if strings.Contains(text, tt.not) {
			t.Errorf("%s: %q is in\n%s", tt.name, tt.not, text)
		}
		// On a narrow one the lines go on where a shell has them go on.
		narrow := strings.ReplaceAll(screenText(f.lines(60, 60)), " \\\n", "")
		if narrow = strings.Join(strings.Fields(narrow), " "); tt.name != "hostile" && !strings.Contains(narrow, "override set --action block --key "+shellWord(tt.key)+" --expires 1h") {
			t.Errorf("%s: the command is not whole in 60 columns:\n%s", tt.name, narrow)
		}
	}
	top := someKeys(1, "denied")
	top.Masked = true
	f := topFrame{server: "http://127.0.0.1:8081", top: &top, traffic: &traffic{}, open: &top.Keys[0], kind: "denied"}
	if text := screenText(f.lines(80, 24)); !strings.Contains(text, "role operate") || strings.Contains(text, "--key") {
		t.Errorf("of a masked key:\n%s", text)
	}
}

func screenText(lines []line) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l.String() + "\n")
	}
	return b.String()
}

func TestSparkline(t *testing.T) {
	for _, tt := range []struct {
		values  []float64
		columns int
		want    string
	}{
		{nil, 5, ""},
		{[]float64{1}, 0, ""},
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

// Colours are for those who want them; what stands out otherwise does so in any case.
func TestLine_Colors(t *testing.T) {
	l := line{{"a", []look{bold, red}}, {"b", []look{green}}, {text: "c"}}
	if got, want := l.told(true), "\x1b[1;31ma\x1b[m\x1b[32mb\x1b[mc"; got != want {
		t.Errorf("in colours: %q, want %q", got, want)
	}
	if got, want := l.told(false), "\x1b[1ma\x1b[mbc"; got != want {
		t.Errorf("without: %q, want %q", got, want)
	}
	t.Setenv("NO_COLOR", "1")
	if wantsColors() {
		t.Error("colours are wanted where NO_COLOR is set")
	}
}

func TestTopView_Ends(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(s *session, stop func())
	}{
		{"Ctrl-C", func(s *session, _ func()) { s.keys.Write([]byte(keyCtrlC)) }},
		{"the end of the input", func(s *session, _ func()) { s.keys.Close() }},
		{"a signal", func(_ *session, stop func()) { stop() }},
		{"a terminal that is gone", func(s *session, _ func()) {
			s.mu.Lock()
			s.fails = true
			s.mu.Unlock()
			s.resize(1, 1)
		}},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			s := startView(t, ctx)
			synctest.Wait()
			tt.end(s, stop)
			select {
			case <-s.ended:
			case <-time.After(time.Minute):
				t.Errorf("%s does not end it", tt.name)
			}
			s.keys.Close()
		})
	}
}

// What was there before is there again, whatever ended it.
func TestTerminal_LeavesItClean(t *testing.T) {
	s := &screen{w: 80, h: 24}
	term := terminal{out: s, size: s.size}
	if err := term.begin(); err != nil {
		t.Fatal(err)
	}
	if err := term.draw([]line{plainLine("a"), {{"b", []look{flipped, red}}}}); err != nil {
		t.Fatal(err)
	}
	term.end()
	want := otherScreen + toTheTop + "a" + clearLine + "\r\n\x1b[7mb" + normal + clearLine + clearBelow + firstScreen
	if got := s.all.String(); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
