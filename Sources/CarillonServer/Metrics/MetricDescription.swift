import CarillonCore

/// The description that precedes the series of one name. Names of metrics that the server did not define get Prometheus'
/// suffixes.
struct MetricDescription {
    enum Kind: String {
        case counter, gauge, histogram
    }

    var name: String
    var type: Kind
    var help: String
    var bounds: [Double] = []

    private static let otherBounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
    private static let otherSizes = [1.0, 4, 16, 64, 256, 1024, 4096, 16_384, 65_536]

    init(_ metric: ServerMetric) {
        name = metric.rawValue
        help = metric.help
        switch metric.kind {
        case .counter: type = .counter
        case .gauge: type = .gauge
        case .histogram(let bounds):
            type = .histogram
            self.bounds = bounds
        }
    }

    init(counter label: String) { self.init(label, .counter, ending: "_total") }
    init(gauge label: String) { self.init(label, .gauge, ending: "") }
    init(histogram label: String) { self.init(label, .histogram, ending: "", bounds: Self.otherSizes) }
    init(timer label: String) { self.init(label, .histogram, ending: "_seconds", bounds: Self.otherBounds) }

    private init(_ label: String, _ type: Kind, ending: String, bounds: [Double] = []) {
        let legal = Self.legal(label)
        self.init(
            name: legal.hasSuffix(ending) ? legal : legal + ending, type: type,
            help: "Counted by a library: \(label).", bounds: bounds)
        if let known = ServerMetric(rawValue: label) { self = MetricDescription(known) }
    }

    private init(name: String, type: Kind, help: String, bounds: [Double]) {
        self.name = name
        self.type = type
        self.help = help
        self.bounds = bounds
    }

    /// Returns a name of letters, digits and underscores that does not start with a digit.
    static func legal(_ name: String) -> String {
        let letters = name.unicodeScalars.map { scalar -> Character in
            switch scalar {
            case "a"..."z", "A"..."Z", "0"..."9", "_": Character(scalar)
            default: "_"
            }
        }
        let text = String(letters)
        return text.first.map { $0.isNumber ? "_" + text : text } ?? "_"
    }
}
