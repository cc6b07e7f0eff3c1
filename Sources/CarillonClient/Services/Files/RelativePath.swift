// Only Foundation has Unicode normalization.
import Foundation

/// The name under which a file is transferred and stored: components below the directory of its message, in NFC. No component
/// leaves that directory or is another name on another system.
///
/// All comparisons use Unicode scalars: a joiner or an accent after "/" or "." forms one character with it, and has its own bytes
/// on the disk.
struct RelativePath: Hashable, Sendable {
    let components: [String]

    static let mostComponents = 16
    static let longestComponentBytes = 255
    static let longestBytes = 1000

    /// Returns nil if the name is rejected.
    init?(_ text: String) {
        let normal = text.precomposedStringWithCanonicalMapping
        let components = normal.unicodeScalars.split(separator: "/", omittingEmptySubsequences: false).map { String($0) }
        guard normal.utf8.count <= Self.longestBytes, (1...Self.mostComponents).contains(components.count),
            components.allSatisfy(Self.isName)
        else { return nil }
        self.components = components
    }

    private static func isName(_ name: String) -> Bool {
        let scalars = name.unicodeScalars
        guard let first = scalars.first, let last = scalars.last, name.utf8.count <= longestComponentBytes,
            first != ".", first != " ", last != ".", last != " ", !isJoiner(first)
        else { return false }
        return scalars.allSatisfy(isHarmless) && !isDevice(scalars)
    }

    private static func isHarmless(_ scalar: Unicode.Scalar) -> Bool {
        if isJoiner(scalar) { return true }
        switch scalar.value {
        // Control characters, and characters that Windows reserves.
        case 0..<0x20, 0x7F...0x9F, 0x22, 0x2A, 0x3A, 0x3C, 0x3E, 0x3F, 0x5C, 0x7C: return false
        // Characters that reverse or hide text.
        case 0x061C, 0x200B...0x200F, 0x2028...0x202E, 0x2060...0x206F, 0xFEFF, 0xFFF9...0xFFFB: return false
        default:
            let category = scalar.properties.generalCategory
            return category != .unassigned && category != .privateUse
        }
    }

    /// Whether a scalar is U+200C or U+200D, which are necessary in many languages and in emoji sequences.
    private static func isJoiner(_ scalar: Unicode.Scalar) -> Bool { scalar == "\u{200C}" || scalar == "\u{200D}" }

    /// Whether Windows reserves the name for a device, with any extension.
    private static func isDevice(_ scalars: String.UnicodeScalarView) -> Bool {
        let stem = String(scalars.prefix { $0 != "." }).uppercased()
        if ["CON", "PRN", "AUX", "NUL"].contains(stem) { return true }
        let digits = "123456789¹²³"
        return (stem.hasPrefix("COM") || stem.hasPrefix("LPT")) && stem.count == 4 && digits.contains(stem.last ?? "x")
    }

    var text: String { components.joined(separator: "/") }

    /// The name in the form in which systems compare it that ignore case or joiners.
    private var folded: [String] {
        components.map { component in
            var seen = String.UnicodeScalarView()
            seen.append(contentsOf: component.unicodeScalars.filter { !Self.isJoiner($0) })
            return String(seen).lowercased().uppercased().lowercased()
        }
    }

    // MARK: Several files

    /// Returns the names of the files of one message, in their order. If an earlier file has the same name on some system, a
    /// number is inserted before the extension: `same 2.txt`.
    ///
    /// - Returns: Nil if the name of a file is a directory of another file.
    static func distinct(_ paths: [RelativePath]) -> [RelativePath]? {
        var files: Set<[String]> = []
        var named: [RelativePath] = []
        for path in paths {
            var own = path
            var number = 2
            while !files.insert(own.folded).inserted {
                guard let next = path.numbered(number) else { return nil }
                own = next
                number += 1
            }
            named.append(own)
        }
        let directories = named.flatMap { path -> [[String]] in
            let folded = path.folded
            return (1..<folded.count).map { Array(folded.prefix($0)) }
        }
        return files.isDisjoint(with: directories) ? named : nil
    }

    /// Returns the name with a number before its extension. If the name is too long, the end of its stem is cut off.
    private func numbered(_ number: Int) -> RelativePath? {
        guard let name = components.last else { return nil }
        let directory = components.dropLast().map { $0 + "/" }.joined()
        let scalars = Array(name.unicodeScalars)
        let room = min(Self.longestComponentBytes, Self.longestBytes - directory.utf8.count)
        let dot = scalars.lastIndex(of: ".") ?? scalars.endIndex
        for end in Set([dot, scalars.endIndex]).sorted() {
            let ending = " \(number)" + Self.string(scalars[end...])
            var stem = scalars[..<end]
            while !stem.isEmpty, Self.string(stem).utf8.count + ending.utf8.count > room { stem.removeLast() }
            if !stem.isEmpty, let path = RelativePath(directory + Self.string(stem) + ending) { return path }
        }
        return nil
    }

    private static func string(_ scalars: ArraySlice<Unicode.Scalar>) -> String {
        var view = String.UnicodeScalarView()
        view.append(contentsOf: scalars)
        return String(view)
    }
}
