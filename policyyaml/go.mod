module github.com/metehq/mete/policyyaml

go 1.26.0

require github.com/metehq/mete v0.0.0

require github.com/goccy/go-yaml v1.19.2

replace github.com/metehq/mete => ../
