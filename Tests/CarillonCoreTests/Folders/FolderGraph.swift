/// The folders of a target, and which types of other folders the files of each folder name.
///
/// A nested type belongs to the folder of its outermost type. Comments, string literals, names after a dot and nested types of the same
/// declaration do not count. A use that does not name a type, such as a call of a member, is not found.
struct FolderGraph {
    /// A file and a type of another folder that it names.
    struct Use: Hashable, CustomStringConvertible {
        var file: String
        var folder: String
        var type: String
        var typeFolder: String

        var description: String { "\(file) uses \(type) of \(typeFolder)" }
    }

    private(set) var folders: Set<String> = []
    private(set) var uses: Set<Use> = []
    /// Names of types that two folders declare. A use of such a name is assigned to one of them.
    private(set) var ambiguousTypes: Set<String> = []

    /// - Parameter sources: The text of each file by its path in the target. A file outside of all folders has the folder "".
    init(_ sources: [String: String]) {
        var declarations: [Declaration] = []
        for (file, source) in sources {
            let folder = file.contains("/") ? String(file.prefix { $0 != "/" }) : ""
            folders.insert(folder)
            declarations += DeclarationReader.declarations(in: source, of: file, in: folder)
        }
        var owners: [String: String] = [:]
        var inner: [String: Set<String>] = [:]
        var hidden: [String: Set<String>] = [:]
        for declaration in declarations {
            inner[declaration.name, default: []].formUnion(declaration.inner)
            guard declaration.isType else { continue }
            if declaration.isPrivate {
                hidden[declaration.file, default: []].insert(declaration.name)
            } else if let earlier = owners.updateValue(declaration.folder, forKey: declaration.name),
                earlier != declaration.folder
            {
                ambiguousTypes.insert(declaration.name)
            }
        }
        for declaration in declarations {
            let own = (inner[declaration.name] ?? []).union(hidden[declaration.file] ?? [])
            for name in declaration.names.subtracting(own) {
                guard let owner = owners[name], owner != declaration.folder else { continue }
                uses.insert(Use(file: declaration.file, folder: declaration.folder, type: name, typeFolder: owner))
            }
        }
    }

    /// Returns the uses of a folder that does not come before the using folder. If there are none, the graph has no cycle.
    ///
    /// - Parameter order: All folders; each may use the folders before it.
    func uses(against order: [String]) -> [Use] {
        let places = Dictionary(uniqueKeysWithValues: order.enumerated().map { ($1, $0) })
        return uses.filter { places[$0.typeFolder, default: .max] >= places[$0.folder, default: .max] }
            .sorted { $0.description < $1.description }
    }
}
