// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"errors"
	"fmt"
	"math/big"
	"math/bits"
	"strings"
	"time"
)

// A Rate is a refill speed: Tokens every Per. [Spec.Compile] rejects the zero Rate.
type Rate struct {
	Tokens Tokens        // above 0
	Per    time.Duration // above 0, in whole microseconds
}

// ErrRate is wrapped by the errors about invalid rates.
var ErrRate = errors.New("bucket: invalid rate")

// PerSecond returns the rate of t per second.
func PerSecond(t Tokens) Rate { return Rate{Tokens: t, Per: time.Second} }

// TokensIn returns the refill within d, rounded down to a thousandth. Use it for a capacity that is given as a duration,
// such as DynamoDB's burst credit of 300 s. It is 0 for d ≤ 0 and for the zero Rate, and at most [MaxTokens].
func (r Rate) TokensIn(d time.Duration) Tokens {
	if d <= 0 || r.Tokens <= 0 || r.Per <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(r.Tokens), uint64(d))
	if hi >= uint64(r.Per) {
		return MaxTokens
	}
	q, _ := bits.Div64(hi, lo, uint64(r.Per))
	return Tokens(min(q, uint64(MaxTokens)))
}

// String formats r for [ParseRate]: "7/1m0s".
func (r Rate) String() string { return r.Tokens.String() + "/" + r.Per.String() }

// ParseRate parses "tokens/duration", such as "7/1m" or "0.5/10s". The duration has the format of [ParseDuration]; a
// unit alone means one unit: "7/m".
func ParseRate(s string) (Rate, error) {
	amount, per, ok := strings.Cut(s, "/")
	if !ok {
		return Rate{}, fmt.Errorf("%w: %q has no slash: write tokens/duration, as in 7/1m", ErrRate, s)
	}
	if per = strings.TrimSpace(per); per != "" && !strings.ContainsAny(per, "0123456789.") {
		per = "1" + per
	}
	tokens, err := ParseTokens(strings.TrimSpace(amount))
	if err != nil {
		return Rate{}, fmt.Errorf("%w: %w", ErrRate, err)
	}
	d, err := ParseDuration(per)
	if err != nil {
		return Rate{}, fmt.Errorf("%w: %w", ErrRate, err)
	}
	r := Rate{Tokens: tokens, Per: d}
	return r, r.check()
}

// ParsePerSecond parses a decimal number of tokens per second, such as "100", "0.5" or "0.0001". It lengthens
// the period for fractions of a thousandth, so the result is exact for up to about 15 digits. Longer numbers
// become the closest lower rate, or an error if that rate is not within a billionth of the number.
func ParsePerSecond(s string) (Rate, error) {
	digits, scale, err := parseDecimal(s)
	if errors.Is(err, errDigits) {
		return roundPerSecond(s)
	}
	if err != nil {
		return Rate{}, fmt.Errorf("%w: %w", ErrRate, err)
	}
	r := Rate{Tokens: Tokens(digits), Per: time.Second}
	for ; scale < 3; scale++ {
		if r.Tokens *= 10; r.Tokens > MaxTokens {
			return Rate{}, fmt.Errorf("%w: %q tokens per second is above %v", ErrRate, s, MaxTokens)
		}
	}
	for ; scale > 3; scale-- {
		if r.Per *= 10; r.Per > maxPer {
			return roundPerSecond(s)
		}
	}
	return r, r.check()
}

// roundPerSecond returns the closest rate below the decimal number s, or an error if the rate is too far from s.
func roundPerSecond(s string) (Rate, error) {
	asked, ok := new(big.Rat).SetString(s)
	if !ok {
		return Rate{}, fmt.Errorf("%w: %q is not a decimal number", ErrRate, s)
	}
	asked.Quo(asked, big.NewRat(1000, 1)) // thousandths per microsecond
	whole := new(big.Int).Div(asked.Num(), asked.Denom())
	if !whole.IsInt64() || whole.Int64() >= int64(MaxTokens) {
		return Rate{}, fmt.Errorf("%w: %q tokens per second is above %v", ErrRate, s, MaxTokens)
	}
	const most = int64(maxPer / time.Microsecond)
	used := closestBelow(asked, min(most, int64(MaxTokens)/(whole.Int64()+1)))
	if used.Sign() == 0 || !isCloseEnough(asked, used) {
		return Rate{}, fmt.Errorf("%w: %q tokens per second is too slow to represent", ErrRate, s)
	}
	r := Rate{Tokens: Tokens(used.Num().Int64()), Per: time.Duration(used.Denom().Int64()) * time.Microsecond}
	return r, r.check()
}

func (r Rate) check() error {
	switch {
	case r.Tokens <= 0:
		return fmt.Errorf("%w: %v tokens: a rate must be above 0", ErrRate, r.Tokens)
	case r.Tokens > MaxTokens:
		return fmt.Errorf("%w: %v tokens is above %v", ErrRate, r.Tokens, MaxTokens)
	case r.Per <= 0:
		return fmt.Errorf("%w: per %v: the period must be above 0", ErrRate, r.Per)
	case r.Per%time.Microsecond != 0:
		return fmt.Errorf("%w: per %v: the period must be whole microseconds", ErrRate, r.Per)
	}
	return nil
}

const maxPer = 1 << 59 * time.Nanosecond
