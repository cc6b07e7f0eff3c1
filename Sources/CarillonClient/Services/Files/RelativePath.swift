/// The name under which a file travels and is put down: components below the directory of its message, and nothing that leads elsewhere
/// or is another name on another system.
struct RelativePath: Hashable, Sendable {
    let components: [String]

    static let mostComponents = 16
    static let longestComponentBytes = 200
    static let longestBytes = 1000

    /// Nil for one that is refused.
    init?(_ text: String) {
        let components = text.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        guard text.utf8.count <= Self.longestBytes, (1...Self.mostComponents).contains(components.count),
            components.allSatisfy(Self.isName)
        else { return nil }
        self.components = components
    }

    private static func isName(_ name: String) -> Bool {
        guard (1...longestComponentBytes).contains(name.utf8.count), name != ".", name != "..", !name.hasPrefix("."),
            !name.hasSuffix("."), !name.hasSuffix(" "), !name.hasPrefix(" ")
        else { return false }
        guard name.unicodeScalars.allSatisfy(isHarmless) else { return false }
        return !isDevice(name)
    }

    private static func isHarmless(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        // Controls, and what Windows has for other purposes.
        case 0..<0x20, 0x7F...0x9F, 0x22, 0x2A, 0x3A, 0x3C, 0x3E, 0x3F, 0x5C, 0x7C: false
        // What turns or hides text.
        case 0x200B...0x200F, 0x2028...0x202E, 0x2060...0x206F, 0xFEFF, 0xFFF9...0xFFFB: false
        default: scalar.properties.generalCategory != .unassigned && scalar.properties.generalCategory != .privateUse
        }
    }

    /// Names that Windows keeps for devices, with any extension.
    private static func isDevice(_ name: String) -> Bool {
        let stem = (name.split(separator: ".", maxSplits: 1).first.map(String.init) ?? name).uppercased()
        if ["CON", "PRN", "AUX", "NUL"].contains(stem) { return true }
        let digits = "123456789¹²³"
        return (stem.hasPrefix("COM") || stem.hasPrefix("LPT")) && stem.count == 4 && digits.contains(stem.last ?? "x")
    }

    var text: String { components.joined(separator: "/") }

    /// What is one name on a system that does not tell cases apart. Compositions are told apart by no two strings of Swift.
    private var folded: [String] { components.map { $0.lowercased().uppercased().lowercased() } }

    /// Whether two of them are one file, or one is a directory of another, on some system.
    static func collide(_ paths: [RelativePath]) -> Bool {
        var files: Set<[String]> = []
        var directories: Set<[String]> = []
        for path in paths {
            let folded = path.folded
            guard files.insert(folded).inserted else { return true }
            for count in 0..<folded.count where count > 0 { directories.insert(Array(folded.prefix(count))) }
        }
        return !files.isDisjoint(with: directories)
    }
}
