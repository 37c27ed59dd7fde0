//! The settings that choose among plans: PostgreSQL's cost parameters and its switches.

/// Cost parameters, in units of reading a page in sequence, and the methods that are wanted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlannerSettings {
    /// `seq_page_cost`
    pub sequential_page: f64,
    /// `random_page_cost`
    pub random_page: f64,
    /// `cpu_tuple_cost`
    pub row: f64,
    /// `cpu_index_tuple_cost`
    pub index_entry: f64,
    /// `cpu_operator_cost`
    pub operator: f64,
    /// `effective_cache_size`, in pages.
    pub cached_pages: f64,
    /// `work_mem`, in bytes.
    pub work_bytes: f64,
    /// `enable_hashjoin`
    pub hash_joins: bool,
    /// `enable_mergejoin`
    pub merge_joins: bool,
    /// `enable_nestloop`
    pub loop_joins: bool,
    /// `enable_material`
    pub keeps_rows: bool,
    /// `enable_seqscan`
    pub sequential_scans: bool,
    /// `enable_indexscan`
    pub index_scans: bool,
    /// `enable_sort`
    pub sorts: bool,
    /// Relations of an inner join that all orders are looked at for; at most 12.
    pub searched_relations: usize,
}

/// Added to the cost of a method that is not wanted: it is taken where there is no other.
pub(crate) const NOT_WANTED: f64 = 1.0e10;

impl Default for PlannerSettings {
    fn default() -> PlannerSettings {
        PlannerSettings {
            sequential_page: 1.0,
            random_page: 4.0,
            row: 0.01,
            index_entry: 0.005,
            operator: 0.0025,
            cached_pages: 524_288.0,
            work_bytes: 4_194_304.0,
            hash_joins: true,
            merge_joins: true,
            loop_joins: true,
            keeps_rows: true,
            sequential_scans: true,
            index_scans: true,
            sorts: true,
            searched_relations: 8,
        }
    }
}
