// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/parse"
)

// A Stage warns or delays requests that a limit admits while a share of the limit is used.
type Stage struct {
	At    bucket.Tokens // used tokens from which the stage applies
	Share string        // of the capacity, as in the file: "80%"
	Delay time.Duration // of each request; 0 if the stage only warns

	perToken time.Duration // the growth of Delay with each used token, up to 30 s
}

// Stage returns the highest stage of l that applies at used tokens, or nil.
func (l *Limit) Stage(used bucket.Tokens) *Stage {
	for i := len(l.Stages) - 1; i >= 0; i-- {
		s := &l.Stages[i]
		if used < s.At {
			continue
		}
		if s.perToken > 0 {
			grown := *s
			grown.Delay = min(s.Delay+time.Duration((used-s.At)/bucket.Token)*s.perToken, maxStageDelay)
			return &grown
		}
		return s
	}
	return nil
}

const (
	maxStages = 10

	maxStageDelay = 30 * time.Second
)

var stageWords = []string{"warn", "throttle", "reject"}

func (c *compiler) readStages(l *Limit, n *parse.Node) {
	list, _ := c.Items(n, "staged_actions", true, maxStages)
	last := new(big.Rat)
	for _, item := range list {
		o := c.Object(item, stageTable)
		if o == nil {
			continue
		}
		share, at := c.readThreshold(o)
		if share != nil {
			if share.Cmp(last) <= 0 && last.Sign() > 0 {
				c.Add(at, "the thresholds of stages must increase", "")
			}
			last = share
		}
		action, delay, ok := c.readStageAction(o, share)
		if !ok || share == nil || action == "reject" { // the limit itself rejects
			continue
		}
		used := new(big.Rat).Mul(share, big.NewRat(int64(l.Bucket.Capacity()), 100))
		up := new(big.Int).Quo(new(big.Int).Add(used.Num(), new(big.Int).Sub(used.Denom(), big.NewInt(1))), used.Denom())
		l.Stages = append(l.Stages, Stage{At: max(bucket.Tokens(up.Int64()), 1), Share: formatDecimal(share) + "%", Delay: delay})
	}
}

// readStageAction reads the action of a stage that begins at share, or at an unknown share if share is nil.
func (c *compiler) readStageAction(o *parse.Object, share *big.Rat) (action string, delay time.Duration, ok bool) {
	f := o.Require("action", "warn, throttle or reject")
	if f == nil {
		return "", 0, false
	}
	i := c.Choice(f, "action", stageWords, nil)
	if i < 0 {
		return "", 0, false
	}
	action = stageWords[i]
	delay = c.readStageDelay(o, action)
	whole := share != nil && share.Cmp(big.NewRat(100, 1)) == 0
	switch {
	case share == nil:
	case action == "reject" && !whole:
		c.Add(f, "action: reject requires a threshold of 100", "to reject earlier, use a smaller limit")
		return "", 0, false
	case action != "reject" && whole:
		c.Add(f, "at a threshold of 100, no tokens are left for requests", "use action: reject, or a lower threshold")
		return "", 0, false
	}
	return action, delay, true
}

// readThreshold reads the used share in percent where a stage begins, and returns its node. share is nil if it is
// unknown.
func (c *compiler) readThreshold(o *parse.Object) (share *big.Rat, at *parse.Node) {
	f := o.Field("threshold_percent")
	if f == nil {
		f = o.Require("threshold", "the used share of the capacity in percent, as in 80")
	}
	if f == nil {
		return nil, f
	}
	if digits, percent := strings.CutSuffix(f.Text, "%"); percent && parse.Numeric(digits) {
		c.Add(f, "threshold must be a number", "write "+digits)
		return nil, f
	}
	if !c.Number(f, "threshold") {
		return nil, f
	}
	share, ok := new(big.Rat).SetString(f.Text)
	if !ok || share.Cmp(big.NewRat(100, 1)) > 0 {
		c.Add(f, "threshold must be between 0 and 100", "it is the used share of the capacity in percent")
		return nil, f
	}
	return share, f
}

func (c *compiler) readStageDelay(o *parse.Object, action string) (delay time.Duration) {
	f, ms := o.Field("delay"), o.Field("delay_ms")
	switch {
	case f != nil && ms != nil:
		c.Add(ms, "delay_ms contradicts delay", "keep one of them")
		return 0
	case f == nil && ms == nil:
		if action == "throttle" {
			o.Require("delay", `how long each request waits, as in "200ms"`)
		}
		return 0
	case action != "throttle":
		c.AddAt(o.Node, "only action: throttle has a delay", "")
		return 0
	case f != nil:
		d, ok := c.Duration(f, "delay", "200ms")
		if !ok {
			return 0
		}
		delay = d
	default:
		f = ms
		t, ok := c.Tokens(ms, "delay_ms")
		if !ok {
			return 0
		}
		delay = time.Duration(t) * time.Microsecond // amounts are in thousandths
	}
	if delay <= 0 || delay > maxStageDelay {
		c.Add(f, fmt.Sprintf("delay must be above 0 and at most %v", maxStageDelay), "")
	}
	return delay
}

// formatDecimal formats r with up to three decimal places.
func formatDecimal(r *big.Rat) string {
	return strings.TrimRight(strings.TrimRight(r.FloatString(3), "0"), ".")
}
