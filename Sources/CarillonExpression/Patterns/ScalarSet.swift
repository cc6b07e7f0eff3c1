/// The characters that match at one position of a pattern.
struct ScalarSet: Sendable {
    /// Sorted after ``settle()``; no range overlaps or touches another.
    private var ranges: [ClosedRange<UInt32>] = []
    private var categories: Set<String> = []
    /// Items whose complement belongs to the set.
    private var others: [Item] = []
    var isNegated = false
    /// Whether characters that differ only in case match too. This applies before a negation.
    var foldsCase = false

    private enum Item: Hashable, Sendable {
        case ranges([ClosedRange<UInt32>])
        /// General categories of Unicode.
        case categories(Set<String>)

        func holds(_ scalar: Unicode.Scalar) -> Bool {
            switch self {
            case .ranges(let ranges): ranges.contains { $0.contains(scalar.value) }
            case .categories(let categories): categories.contains(scalar.category)
            }
        }
    }

    /// The number of steps to look up a character.
    var weight: Int {
        Int.bitWidth - ranges.count.leadingZeroBitCount + (categories.isEmpty ? 0 : 1) + others.count
    }

    mutating func insert(_ range: ClosedRange<UInt32>) { ranges.append(range) }

    mutating func insert(_ scalar: Unicode.Scalar) { insert(scalar.value...scalar.value) }

    mutating func insert(named ranges: [ClosedRange<UInt32>], negated: Bool) {
        if negated { insert(other: .ranges(ranges)) } else { self.ranges += ranges }
    }

    private mutating func insert(other: Item) {
        if !others.contains(other) { others.append(other) }
    }

    /// Sorts and joins the ranges. Call it after the last insertion, before the set is read.
    mutating func settle() {
        ranges.sort { $0.lowerBound < $1.lowerBound }
        var settled: [ClosedRange<UInt32>] = []
        for range in ranges {
            if let last = settled.last, range.lowerBound <= last.upperBound + 1 {
                settled[settled.count - 1] = last.lowerBound...max(last.upperBound, range.upperBound)
            } else {
                settled.append(range)
            }
        }
        ranges = settled
    }

    /// Adds a general category by its name, such as `L` or `Lu`. Returns false for an unknown name.
    mutating func insert(category name: String, negated: Bool) -> Bool {
        if name == "Any" {
            insert(named: [0...0x10FFFF], negated: negated)
            return true
        }
        let codes = Set(Unicode.GeneralCategory.codes.values.filter { $0 == name || $0.prefix(1) == name })
        guard !codes.isEmpty else { return false }
        if negated { insert(other: .categories(codes)) } else { categories.formUnion(codes) }
        return true
    }

    func contains(_ scalar: Unicode.Scalar) -> Bool {
        let alike = foldsCase ? CaseOrbit.of(scalar) + [scalar] : [scalar]
        let isHeld = alike.contains(where: holds) || others.contains { other in !alike.contains(where: other.holds) }
        return isHeld != isNegated
    }

    private func holds(_ scalar: Unicode.Scalar) -> Bool {
        var (low, high) = (0, ranges.count)
        while low < high {
            let middle = (low + high) / 2
            if ranges[middle].upperBound < scalar.value { low = middle + 1 } else { high = middle }
        }
        if low < ranges.count, ranges[low].lowerBound <= scalar.value { return true }
        return !categories.isEmpty && categories.contains(scalar.category)
    }
}

extension Unicode.Scalar {
    fileprivate var category: String { Unicode.GeneralCategory.codes[properties.generalCategory] ?? "Cn" }
}

extension ScalarSet {
    static let digits: [ClosedRange<UInt32>] = [0x30...0x39]
    static let spaces: [ClosedRange<UInt32>] = [9...10, 12...13, 32...32]
    static let words: [ClosedRange<UInt32>] = [0x30...0x39, 0x41...0x5A, 0x5F...0x5F, 0x61...0x7A]

    /// The ASCII classes such as `[[:alpha:]]`.
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

/// The characters that differ from a character only in case.
enum CaseOrbit {
    static func of(_ scalar: Unicode.Scalar) -> [Unicode.Scalar] {
        orbits[folded(scalar)] ?? [scalar]
    }

    /// Returns the character that represents all characters of an orbit.
    static func folded(_ scalar: Unicode.Scalar) -> Unicode.Scalar {
        alone.contains(scalar.value) ? scalar : twins[scalar.value].flatMap(Unicode.Scalar.init) ?? lower(upper(scalar))
    }

    /// The dotless i, whose upper-case letter belongs to another letter.
    private static let alone: Set<UInt32> = [0x131]
    /// Equal characters whose upper-case forms are several letters.
    private static let twins: [UInt32: UInt32] = [0x1FD3: 0x390, 0x1FE3: 0x3B0, 0xFB06: 0xFB05]

    /// Made for the first pattern that needs it, which takes about twenty milliseconds.
    private static let orbits: [Unicode.Scalar: [Unicode.Scalar]] = {
        var orbits: [Unicode.Scalar: [Unicode.Scalar]] = [:]
        for value in UInt32(0)...0x1FFFF {
            guard let scalar = Unicode.Scalar(value) else { continue }
            let folded = folded(scalar)
            guard folded != scalar || upper(scalar) != scalar else { continue }
            orbits[folded, default: []].append(scalar)
        }
        // A character without an upper-case letter of its own can be the lower-case letter of another one.
        for folded in orbits.keys where orbits[folded]?.contains(folded) == false { orbits[folded]?.append(folded) }
        return orbits
    }()

    private static func upper(_ scalar: Unicode.Scalar) -> Unicode.Scalar {
        one(scalar.properties.uppercaseMapping) ?? scalar
    }

    private static func lower(_ scalar: Unicode.Scalar) -> Unicode.Scalar {
        one(scalar.properties.lowercaseMapping) ?? scalar
    }

    /// Returns nil for a mapping to several characters.
    private static func one(_ mapped: String) -> Unicode.Scalar? {
        mapped.unicodeScalars.count == 1 ? mapped.unicodeScalars.first : nil
    }
}
