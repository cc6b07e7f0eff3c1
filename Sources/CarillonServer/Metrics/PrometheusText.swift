/// The text exposition format, version 0.0.4 (https://prometheus.io/docs/instrumenting/exposition_formats/).
struct PrometheusText {
    static let mediaType = "text/plain; version=0.0.4; charset=utf-8"

    private(set) var text = ""

    mutating func begin(_ description: MetricDescription) {
        let help = description.help.flatMap { $0 == "\n" ? "\\n" : $0 == "\\" ? "\\\\" : String($0) }
        text += "# HELP \(description.name) \(String(help))\n# TYPE \(description.name) \(description.type.rawValue)\n"
    }

    mutating func add(_ name: String, _ labels: String, _ value: Double) {
        text += name
        if !labels.isEmpty { text += "{\(labels)}" }
        text += " \(Self.number(value))\n"
    }

    static func number(_ value: Double) -> String {
        if value.isNaN { return "NaN" }
        if value.isInfinite { return value < 0 ? "-Inf" : "+Inf" }
        return value == value.rounded() && abs(value) < 1e15 ? String(Int64(value)) : String(value)
    }

    /// Returns the value of a label as it is written between quotes.
    static func escaped(_ value: String) -> String {
        String(
            value.flatMap { character -> String in
                switch character {
                case "\\": "\\\\"
                case "\"": "\\\""
                case "\n": "\\n"
                default: String(character)
                }
            })
    }
}
