module github.com/metehq/mete/guard

go 1.26.0

require (
	github.com/metehq/mete v0.0.0
	github.com/sony/gobreaker/v2 v2.4.0
)

replace github.com/metehq/mete => ../
