/// The characters that one place of a pattern takes.
struct ScalarSet: Sendable {
    private var items: [Item] = []
    var isNegated = false
    /// Whether what differs in case only is taken too, before anything is negated.
    var foldsCase = false

    private struct Item: Sendable {
        var ranges: [ClosedRange<UInt32>] = []
        /// General categories of Unicode.
        var categories: Set<String> = []
        var isNegated = false

        func holds(_ scalar: Unicode.Scalar) -> Bool {
            if ranges.contains(where: { $0.contains(scalar.value) }) { return true }
            guard !categories.isEmpty else { return false }
            return categories.contains(Unicode.GeneralCategory.codes[scalar.properties.generalCategory] ?? "Cn")
        }
    }

    /// What each character is compared with.
    var count: Int { items.count }

    mutating func insert(_ range: ClosedRange<UInt32>) { items.append(Item(ranges: [range])) }

    mutating func insert(_ scalar: Unicode.Scalar) { insert(scalar.value...scalar.value) }

    mutating func insert(named ranges: [ClosedRange<UInt32>], negated: Bool) {
        items.append(Item(ranges: ranges, isNegated: negated))
    }

    /// A general category by its name, such as `L` or `Lu`. Answers false for another name.
    mutating func insert(category name: String, negated: Bool) -> Bool {
        if name == "Any" {
            items.append(Item(ranges: [0...0x10FFFF], isNegated: negated))
            return true
        }
        let codes = Set(Unicode.GeneralCategory.codes.values.filter { $0 == name || $0.prefix(1) == name })
        guard !codes.isEmpty else { return false }
        items.append(Item(categories: codes, isNegated: negated))
        return true
    }

    func contains(_ scalar: Unicode.Scalar) -> Bool {
        let orbit = foldsCase ? CaseOrbit.of(scalar) : []
        let isHeld = items.contains { item in
            (item.holds(scalar) || orbit.contains(where: item.holds)) != item.isNegated
        }
        return isHeld != isNegated
    }
}

extension ScalarSet {
    static let digits: [ClosedRange<UInt32>] = [0x30...0x39]
    static let spaces: [ClosedRange<UInt32>] = [9...10, 12...13, 32...32]
    static let words: [ClosedRange<UInt32>] = [0x30...0x39, 0x41...0x5A, 0x5F...0x5F, 0x61...0x7A]

    /// Of `[[:alpha:]]` and its like, which are of ASCII.
    static let posix: [String: [ClosedRange<UInt32>]] = [
        "alnum": [0x30...0x39, 0x41...0x5A, 0x61...0x7A], "alpha": [0x41...0x5A, 0x61...0x7A], "ascii": [0...0x7F],
        "blank": [9...9, 32...32], "cntrl": [0...31, 127...127], "digit": digits, "graph": [0x21...0x7E],
        "lower": [0x61...0x7A],
        "print": [0x20...0x7E], "punct": [0x21...0x2F, 0x3A...0x40, 0x5B...0x60, 0x7B...0x7E], "space": [9...13, 32...32],
        "upper": [0x41...0x5A], "word": words, "xdigit": [0x30...0x39, 0x41...0x46, 0x61...0x66],
    ]
}

extension Unicode.GeneralCategory {
    static let codes: [Unicode.GeneralCategory: String] = [
        .uppercaseLetter: "Lu", .lowercaseLetter: "Ll", .titlecaseLetter: "Lt", .modifierLetter: "Lm", .otherLetter: "Lo",
        .nonspacingMark: "Mn", .spacingMark: "Mc", .enclosingMark: "Me", .decimalNumber: "Nd", .letterNumber: "Nl",
        .otherNumber: "No", .connectorPunctuation: "Pc", .dashPunctuation: "Pd", .openPunctuation: "Ps",
        .closePunctuation: "Pe",
        .initialPunctuation: "Pi", .finalPunctuation: "Pf", .otherPunctuation: "Po", .mathSymbol: "Sm",
        .currencySymbol: "Sc",
        .modifierSymbol: "Sk", .otherSymbol: "So", .spaceSeparator: "Zs", .lineSeparator: "Zl", .paragraphSeparator: "Zp",
        .control: "Cc", .format: "Cf", .surrogate: "Cs", .privateUse: "Co",
    ]
}

/// The characters that differ from one in case only.
enum CaseOrbit {
    static func of(_ scalar: Unicode.Scalar) -> [Unicode.Scalar] {
        orbits[folded(scalar)] ?? [scalar]
    }

    /// One that stands for all of an orbit.
    static func folded(_ scalar: Unicode.Scalar) -> Unicode.Scalar { lower(upper(scalar)) }

    /// Made when the first pattern asks for it: some twenty milliseconds.
    private static let orbits: [Unicode.Scalar: [Unicode.Scalar]] = {
        var orbits: [Unicode.Scalar: [Unicode.Scalar]] = [:]
        for value in UInt32(0)...0x1FFFF {
            guard let scalar = Unicode.Scalar(value) else { continue }
            let folded = folded(scalar)
            guard folded != scalar || upper(scalar) != scalar else { continue }
            orbits[folded, default: []].append(scalar)
        }
        return orbits
    }()

    private static func upper(_ scalar: Unicode.Scalar) -> Unicode.Scalar {
        one(scalar.properties.uppercaseMapping) ?? scalar
    }

    private static func lower(_ scalar: Unicode.Scalar) -> Unicode.Scalar {
        one(scalar.properties.lowercaseMapping) ?? scalar
    }

    /// A mapping to several characters is none of one to one.
    private static func one(_ mapped: String) -> Unicode.Scalar? {
        mapped.unicodeScalars.count == 1 ? mapped.unicodeScalars.first : nil
    }
}
