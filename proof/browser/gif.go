// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/png"
	"io"
	"maps"
	"slices"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// Moving is the screen size of animated pictures.
var Moving = Size{name: "moving", width: 1120, height: 900, scale: 1}

// A Film collects pictures of one part of a page and encodes them as an animated GIF.
type Film struct {
	page   *Page
	clip   page.Viewport
	frames []*image.RGBA
	delays []int // hundredths of a second
}

// Film starts a film of the rectangle around two elements, with a margin. top and bottom are selectors.
func (p *Page) Film(top, bottom string) *Film {
	p.t.Helper()
	edges := Eval[[4]float64](p, fmt.Sprintf(`(() => {
		const a = document.querySelector(%q).getBoundingClientRect(), b = document.querySelector(%q).getBoundingClientRect();
		return [Math.min(a.left, b.left), a.top + scrollY, Math.max(a.right, b.right), b.bottom + scrollY];
	})()`, top, bottom))
	const margin = 8
	return &Film{page: p, clip: page.Viewport{X: edges[0] - margin, Y: edges[1] - margin,
		Width: edges[2] - edges[0] + 2*margin, Height: edges[3] - edges[1] + 2*margin, Scale: 1}}
}

// Shoot adds a frame that is shown for delay hundredths of a second.
func (f *Film) Shoot(delay int) {
	f.page.t.Helper()
	var shot image.Image
	f.page.must("take a frame", func(ctx context.Context) error {
		beyond := true
		picture, err := chromedp.Call(ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{CaptureBeyondViewport: &beyond, Clip: &f.clip})
		if err != nil {
			return err
		}
		shot, err = png.Decode(bytes.NewReader(picture.Data))
		return err
	})
	frame := image.NewRGBA(image.Rect(0, 0, shot.Bounds().Dx(), shot.Bounds().Dy()))
	for y := range frame.Rect.Dy() {
		for x := range frame.Rect.Dx() {
			frame.Set(x, y, shot.At(shot.Bounds().Min.X+x, shot.Bounds().Min.Y+y))
		}
	}
	f.frames, f.delays = append(f.frames, frame), append(f.delays, delay)
}

// Encode writes the film as a GIF that repeats forever. All frames share a palette. After the first frame, each one
// contains only the changed rectangle, with transparent pixels where nothing changed.
func (f *Film) Encode(w io.Writer) error {
	palette := paletteOf(f.frames)
	clear := uint8(len(palette) - 1)
	nearest := map[color.RGBA]uint8{}
	index := func(c color.RGBA) uint8 {
		i, ok := nearest[c]
		if !ok {
			i = uint8(palette[:clear].Index(c))
			nearest[c] = i
		}
		return i
	}
	film := gif.GIF{}
	for n, frame := range f.frames {
		changed := frame.Rect
		if n > 0 {
			changed = changedPart(f.frames[n-1], frame)
		}
		if changed.Empty() {
			film.Delay[len(film.Delay)-1] += f.delays[n]
			continue
		}
		part := image.NewPaletted(changed, palette)
		for y := changed.Min.Y; y < changed.Max.Y; y++ {
			for x := changed.Min.X; x < changed.Max.X; x++ {
				c := frame.RGBAAt(x, y)
				if n > 0 && f.frames[n-1].RGBAAt(x, y) == c {
					part.SetColorIndex(x, y, clear)
				} else {
					part.SetColorIndex(x, y, index(c))
				}
			}
		}
		film.Image, film.Delay, film.Disposal = append(film.Image, part), append(film.Delay, f.delays[n]), append(film.Disposal, gif.DisposalNone)
	}
	return gif.EncodeAll(w, &film)
}

// changedPart returns the smallest rectangle that holds all pixels in which two frames differ.
func changedPart(before, after *image.RGBA) (changed image.Rectangle) {
	for y := after.Rect.Min.Y; y < after.Rect.Max.Y; y++ {
		for x := after.Rect.Min.X; x < after.Rect.Max.X; x++ {
			if before.RGBAAt(x, y) != after.RGBAAt(x, y) {
				changed = changed.Union(image.Rect(x, y, x+1, y+1))
			}
		}
	}
	return changed
}

// paletteOf returns the transparent color and up to 255 others. It first chooses frequent colors that differ clearly from
// each other, and then adds closer ones.
func paletteOf(frames []*image.RGBA) color.Palette {
	counts := map[color.RGBA]int{}
	for _, frame := range frames {
		for y := range frame.Rect.Dy() {
			for x := range frame.Rect.Dx() {
				counts[frame.RGBAAt(x, y)]++
			}
		}
	}
	byCount := slices.SortedFunc(maps.Keys(counts), func(a, b color.RGBA) int {
		return cmp.Or(counts[b]-counts[a], cmp.Compare(a.R, b.R), cmp.Compare(a.G, b.G), cmp.Compare(a.B, b.B))
	})
	var chosen []color.RGBA
	for distance := 48; distance >= 0 && len(chosen) < 255; distance -= 4 {
		for _, c := range byCount {
			if len(chosen) < 255 && !slices.ContainsFunc(chosen, func(o color.RGBA) bool { return colorDistance(c, o) <= distance }) {
				chosen = append(chosen, c)
			}
		}
	}
	palette := make(color.Palette, 0, len(chosen)+1)
	for _, c := range chosen {
		palette = append(palette, c)
	}
	return append(palette, color.RGBA{})
}

// colorDistance returns the largest difference of two colors in any channel.
func colorDistance(a, b color.RGBA) int {
	diff := func(x, y uint8) int { return max(int(x)-int(y), int(y)-int(x)) }
	return max(diff(a.R, b.R), diff(a.G, b.G), diff(a.B, b.B))
}
