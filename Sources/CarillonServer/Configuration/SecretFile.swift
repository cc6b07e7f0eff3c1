#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// Checks whether the permissions of a file protect the secret in it.
///
/// Only the owner can have write permission, and only the owner and the group can have read permission. The owner must be root or
/// the user of the process. A group with read permission must be one of the groups of the process. Service managers provide files
/// in this form. A file below `$CREDENTIALS_DIRECTORY` comes from systemd, which protects the directory.
package struct SecretFile: Equatable, Sendable {
    /// The process that reads the file.
    package struct Reader: Equatable, Sendable {
        package var user: UInt32
        package var groups: Set<UInt32>

        package init(user: UInt32, groups: Set<UInt32>) {
            self.user = user
            self.groups = groups
        }

        package static var current: Reader {
            var groups = [gid_t](repeating: 0, count: max(0, Int(getgroups(0, nil))))
            let count = getgroups(Int32(groups.count), &groups)
            return Reader(user: geteuid(), groups: Set(groups.prefix(max(0, Int(count)))).union([getegid()]))
        }
    }

    /// The permissions, in the form that `chmod` uses.
    package var mode: UInt32
    package var owner: UInt32
    package var group: UInt32
    /// Whether the file is below `$CREDENTIALS_DIRECTORY`.
    package var isCredential: Bool

    package init(mode: UInt32, owner: UInt32, group: UInt32, isCredential: Bool = false) {
        self.mode = mode
        self.owner = owner
        self.group = group
        self.isCredential = isCredential
    }

    /// Returns the fault of the permissions, as a clause that follows the name of the file; nil if the permissions are
    /// acceptable.
    package func fault(for reader: Reader) -> String? {
        if isCredential { return nil }
        if mode & 0o007 != 0 { return "has permissions for all users. Remove them with \"chmod o=\"" }
        if mode & 0o030 != 0 { return "can be changed or run by its group. Remove that with \"chmod g-wx\"" }
        if owner != 0 && owner != reader.user {
            return "belongs to another user. Its owner must be root or the user of the process"
        }
        if mode & 0o040 != 0, !reader.groups.contains(group) {
            return "can be read by a group that the process does not belong to. Remove that with \"chmod g=\""
        }
        return nil
    }

    /// Returns the fault of the permissions of an open file. Pipes and devices are not checked.
    ///
    /// - Parameter credentials: The directory whose files are accepted with any permissions.
    package static func fault(
        of descriptor: Int32, at path: String, credentials: String? = credentialsDirectory
    ) -> String? {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return "cannot be examined" }
        guard status.st_mode & S_IFMT == S_IFREG else { return nil }
        return SecretFile(
            mode: UInt32(status.st_mode) & 0o777, owner: status.st_uid, group: status.st_gid,
            isCredential: isFile(path, below: credentials)
        ).fault(for: .current)
    }

    package static var credentialsDirectory: String? {
        getenv("CREDENTIALS_DIRECTORY").map { String(cString: $0) }
    }

    private static func isFile(_ path: String, below directory: String?) -> Bool {
        guard let directory, !directory.isEmpty, let place = resolved(directory), let file = resolved(path) else {
            return false
        }
        return place != "/" && file.hasPrefix(place + "/")
    }

    /// Returns the path without symbolic links.
    private static func resolved(_ path: String) -> String? {
        guard let text = realpath(path, nil) else { return nil }
        defer { free(text) }
        return String(cString: text)
    }
}
